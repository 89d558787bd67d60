//! What a mistaken attribute becomes: the mistakes, the item as it was, and as little else as keeps others quiet.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;
use syn::{ItemImpl, Type};

use crate::{
    args::Options,
    constants::Constants,
    errors::Errors,
    function::{Function, conditions},
    names::Names,
};

/// For a function: it stays, and still is a consumer to whoever names it.
pub(crate) fn function(options: &Options, function: &Function, errors: Errors) -> TokenStream {
    let Function { attributes, rest, visibility, signature, .. } = function;
    let name = &signature.ident;
    let names = Names::beside(name, options.krate.as_ref());
    let (acemq, private) = (names.acemq(), names.private());
    let conditions = function.conditions();
    let errors = errors.into_tokens();
    // One of these would complain once more.
    let attributes = attributes.iter().filter(|attribute| {
        !attribute.path().segments.last().is_some_and(|name| name.ident == "consumer" || name.ident == "test")
    });
    let kept = quote! {
        #errors

        #(#attributes)*
        #[allow(dead_code, unused_variables)]
        #rest
    };
    if function.receiver().is_some() {
        // Nothing can be put beside a method.
        return kept;
    }
    // Values that are well formed are checked all the same, so that their mistakes are not seen one build later.
    let values = Constants::apart(options, &names).items;
    quote! {
        #kept

        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        #visibility struct #name {}

        #(#conditions)*
        #[allow(dead_code, unused_imports)]
        const _: () = {
            use #private as #acemq;

            #values

            #[automatically_derived]
            impl #acemq::Consumer for #name {
                const REGISTRATION: #acemq::Registration = #acemq::BROKEN;
            }
        };
    }
}

/// For a block of methods: it stays, and its type still is a service to whoever names it.
pub(crate) fn block(block: &ItemImpl, names: &Names, errors: Errors) -> TokenStream {
    let private = names.private();
    let errors = errors.into_tokens();
    let kind = &block.self_ty;
    let conditions = conditions(&block.attrs);
    let can_be_service = block.generics.params.is_empty() && block.trait_.is_none() && matches!(**kind, Type::Path(_));
    let service = can_be_service.then(|| {
        quote! {
            #(#conditions)*
            #[automatically_derived]
            impl #private::Consumers for #kind {
                const REGISTRATIONS: &'static [#private::Registration] = &[];
            }
        }
    });
    quote! {
        #errors

        #[allow(dead_code, unused_variables)]
        #block

        #service
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
    const KEYWORDS: [&str; 10] = ["trait", "impl", "struct", "enum", "mod", "fn", "static", "type", "use", "union"];
    item.clone().into_iter().find_map(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()).filter(|word| KEYWORDS.contains(&word.as_str())),
        _ => None,
    })
}
