//! `#[consumers]` on an `impl`: methods of one service that is shared by all calls.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Attribute, ImplItem, ItemImpl, Meta, Path, Type};

use crate::{
    args::Options,
    docs,
    entries::{Known, Shape, Table},
    errors::Errors,
    expand::{Registration, Target, registration},
    fallback,
    function::{Function, Handler, Role, conditions},
    names::Names,
    values,
};

const CRATE: Known = Known::new("crate", Shape::Value, "crate = my_crate::acemq");

static OPTIONS: Table = Table { of: None, known: &[CRATE], instead: &[], lone_text: None, positional: 0 };

/// A method with the attribute.
struct Method {
    options: Options,
    function: Function,
    handler: Option<Handler>,
}

/// Reads the block and writes what it becomes.
pub(crate) fn consumers(attribute: TokenStream, item: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let Ok(mut block) = syn::parse2::<ItemImpl>(item.clone()) else {
        errors.at(Span::call_site(), "`#[consumers]` goes on an `impl` block with `#[consumer(…)]` methods");
        let errors = errors.into_tokens();
        return quote!(#errors #item);
    };
    let krate = own_options(attribute, &mut errors);
    look_at(&block, &mut errors);
    let methods = methods(&mut block, krate.as_ref(), &mut errors);
    if methods.is_empty() {
        errors.at(Span::call_site(), "no consumer here: mark a method with `#[consumer(queue = \"…\")]`");
    }
    let names = Names::alone(krate.as_ref());
    if errors.is_empty() { expand(&block, &methods, &names) } else { fallback::block(&block, &names, errors) }
}

fn own_options(attribute: TokenStream, errors: &mut Errors) -> Option<Path> {
    let is_crate = matches!(attribute.clone().into_iter().next(), Some(TokenTree::Ident(word)) if word == "crate");
    if !attribute.is_empty() && !is_crate {
        errors.on(attribute, "`#[consumers]` takes no options: give them to each `#[consumer]`");
        return None;
    }
    let (_, tokens) = OPTIONS.read(attribute, errors).value("crate")?;
    values::module(&CRATE, tokens, errors)
}

/// Looks for all that a service cannot be.
fn look_at(block: &ItemImpl, errors: &mut Errors) {
    if !block.generics.params.is_empty() {
        let generics = &block.generics;
        errors
            .on(quote!(#generics), "the service of a consumer cannot be generic: it is registered once, for one type");
    }
    if let Some((path, _)) = &block.trait_ {
        errors
            .on(path, "`#[consumers]` goes on an `impl` without a trait: let a method there call the one of the trait");
    }
    if !matches!(&*block.self_ty, Type::Path(_)) {
        errors.on(&block.self_ty, "the service of a consumer is a type of your own, by its name");
    }
}

/// Takes the attributes of the consumers off their methods, and reads them.
fn methods(block: &mut ItemImpl, krate: Option<&Path>, errors: &mut Errors) -> Vec<Method> {
    let mut methods = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let Some(place) = method.attrs.iter().position(is_consumer) else { continue };
        let attribute = method.attrs.remove(place);
        let tokens = match &attribute.meta {
            Meta::List(list) => list.tokens.clone(),
            Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
        };
        let mut options = Options::read(tokens, Some(&attribute), errors);
        options.krate = options.krate.or_else(|| krate.cloned());
        let Some(function) = Function::read(method.to_token_stream()) else { continue };
        let handler = function.handler(Role::Method, options.blocking.as_ref(), errors);
        method.attrs.retain(|attribute| !is_consumer(attribute));
        if handler.is_some() {
            docs::attach(&mut method.attrs, &options);
        }
        methods.push(Method { options, function, handler });
    }
    methods
}

fn is_consumer(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "consumer")
}

fn expand(block: &ItemImpl, methods: &[Method], names: &Names) -> TokenStream {
    let (acemq, imports, service) = (names.acemq(), names.imports(), names.item("Service"));
    let kind = &block.self_ty;
    let block_conditions = conditions(&block.attrs);
    let mut constants = TokenStream::new();
    let mut list = TokenStream::new();
    for (place, method) in methods.iter().enumerate() {
        let Some(handler) = &method.handler else { continue };
        let name = &method.function.signature.ident;
        let target = Target {
            call: quote!(<#service>::#name),
            name,
            spoken: format!("{}::{}", docs::text(kind), values::spoken(name)),
            service: Some(quote!(#kind)),
        };
        let Registration { items, value } = registration(&method.options, &target, handler, names);
        let (items, value) = (naming(items, &service), naming(value, &service));
        let constant = names.item(&format!("REGISTRATION_{}", place + 1));
        let conditions = method.function.conditions();
        constants.extend(quote! {
            #(#conditions)*
            const #constant: #acemq::Registration = {
                #items
                #value
            };
            #(#conditions)*
            #acemq::inventory::submit! { #constant }
        });
        list.extend(quote!(#(#conditions)* #constant,));
    }
    quote! {
        #block

        #(#block_conditions)*
        #[allow(deprecated, unused_imports, clippy::all, clippy::pedantic, clippy::nursery)]
        const _: () = {
            #imports

            type #service = #kind;

            #constants

            #[automatically_derived]
            impl #acemq::Consumers for #kind {
                const REGISTRATIONS: &'static [#acemq::Registration] = &[#list];
            }
        };
    }
}

/// The same tokens with the service in place of `Self`, which means nothing outside of the block.
fn naming(tokens: TokenStream, service: &Ident) -> TokenStream {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Ident(word) if word == "Self" => {
                let mut named = service.clone();
                named.set_span(word.span());
                TokenTree::Ident(named)
            }
            TokenTree::Group(group) => {
                let mut named = Group::new(group.delimiter(), naming(group.stream(), service));
                named.set_span(group.span());
                TokenTree::Group(named)
            }
            other => other,
        })
        .collect()
}
