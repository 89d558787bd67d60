//! What a mistaken attribute becomes: the mistakes, the item as it was, and as little else as keeps others quiet.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;

use crate::{args::Options, errors::Errors, function::Function, names::Names};

/// For a function: it stays, and still is a consumer to whoever names it.
pub(crate) fn function(options: &Options, function: &Function, errors: Errors) -> TokenStream {
    let Function { attributes, rest, visibility, signature, .. } = function;
    let name = &signature.ident;
    let private = Names::beside(name, options.krate.as_ref()).private();
    let conditions = function.conditions();
    let errors = errors.into_tokens();
    quote! {
        #errors

        #(#attributes)*
        #[allow(dead_code, unused_variables)]
        #rest

        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        #visibility struct #name {}

        #(#conditions)*
        #[automatically_derived]
        impl #private::Consumer for #name {
            const REGISTRATION: #private::Registration = #private::BROKEN;
        }
    }
}

/// For anything else: it stays.
pub(crate) fn other(item: &TokenStream, mut errors: Errors) -> TokenStream {
    let sentence = match kind(item).as_deref() {
        Some("trait") => "`#[consumer]` goes on an `async fn`; a trait has no body to run",
        Some("impl") => {
            "`#[consumer]` goes on an `async fn`; for the methods of an `impl`, use `#[acemq::consumers]` on the block"
        }
        Some("fn") => "acemq cannot read the head of this function",
        _ => "`#[consumer]` goes on an `async fn`",
    };
    errors.at(Span::call_site(), sentence);
    let errors = errors.into_tokens();
    quote!(#errors #item)
}

/// The keyword of an item.
fn kind(item: &TokenStream) -> Option<String> {
    item.clone().into_iter().find_map(|token| match token {
        TokenTree::Ident(word) => {
            let word = word.to_string();
            ["trait", "impl", "struct", "enum", "mod", "fn", "static", "type", "use", "union"]
                .contains(&word.as_str())
                .then_some(word)
        }
        _ => None,
    })
}
