//! What a correct attribute becomes.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{ReturnType, Type};

use crate::{
    args::Options,
    blame,
    constants::Constants,
    function::{Function, Handler},
    names::{Names, local},
};

/// The function as it was, a type of its name, and the registration.
pub(crate) fn expand(options: &Options, function: &Function, handler: &Handler) -> TokenStream {
    let Function { attributes, rest, visibility, signature, .. } = function;
    let name = &signature.ident;
    let names = Names::beside(name, options.krate.as_ref());
    let conditions = function.conditions();
    let registration = registration(options, name, handler, &names);
    let (acemq, private, constant) = (names.acemq(), names.private(), names.item("REGISTRATION"));
    quote! {
        #(#attributes)*
        #rest

        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, dead_code)]
        #visibility struct #name {}

        #(#conditions)*
        #[allow(deprecated, clippy::all, clippy::pedantic, clippy::nursery)]
        const _: () = {
            use #private as #acemq;

            #registration

            #acemq::inventory::submit! { #constant }

            #[automatically_derived]
            impl #acemq::Consumer for #name {
                const REGISTRATION: #acemq::Registration = #constant;
            }
        };
    }
}

fn registration(options: &Options, name: &Ident, handler: &Handler, names: &Names) -> TokenStream {
    let acemq = names.acemq();
    let Constants { items, fields, queue, .. } = Constants::new(options, names);
    let functions = functions(options, name, handler, names);
    let (constant, invoke, requires) = (names.item("REGISTRATION"), names.item("invoke"), names.item("requires"));
    let spoken = crate::values::spoken(name);
    let (check, title) = match &options.name {
        Some(title) => {
            let constant = names.item("NAME");
            let check = blame::call(quote!(#acemq::check::name), quote!(#constant), title);
            (quote! { const #constant: &str = #title; const _: () = #check; }, quote!(#constant))
        }
        None => (TokenStream::new(), quote!(::core::concat!(::core::module_path!(), "::", #spoken))),
    };
    quote! {
        #items
        #check
        #functions

        const #constant: #acemq::Registration = #acemq::Registration {
            name: #title,
            location: #acemq::Location {
                file: ::core::file!(),
                line: ::core::line!(),
            },
            spec: #acemq::ConsumerSpec {
                #fields
                ..#acemq::ConsumerSpec::new(#queue)
            },
            requires: #requires,
            invoke: #invoke,
        };
    }
}

/// The functions that the registration points to.
fn functions(options: &Options, name: &Ident, handler: &Handler, names: &Names) -> TokenStream {
    let acemq = names.acemq();
    let invoke = invoke(options, name, handler, names);
    let requires = requires(handler, names);
    let key = options.idempotent.as_ref().and_then(|idempotent| idempotent.key.as_ref());
    let key = key.map(|path| {
        let (key, context, message) = (names.item("key"), local("context"), local("message"));
        let (value, error) = (local("value"), local("error"));
        let read = read(options, &handler.message, &acemq);
        let called = blame::call(quote!(#acemq::key), quote!(#path(&#message)), path);
        quote! {
            fn #key(
                #context: &#acemq::Context,
            ) -> #acemq::Result<#acemq::String, #acemq::DecodeError> {
                let #message = match #read(#context) {
                    #acemq::Result::Ok(#value) => #value,
                    #acemq::Result::Err(#error) => return #acemq::Result::Err(#error),
                };
                #acemq::Result::Ok(#called)
            }
        }
    });
    quote!(#key #invoke #requires)
}

/// The function that reads a message.
fn read(options: &Options, message: &Type, acemq: &Ident) -> TokenStream {
    let codec = if let Some(codec) = &options.codec { codec.to_token_stream() } else { quote!(#acemq::DefaultCodec) };
    quote!(<#message as #acemq::FromMessage<#codec>>::from_message)
}

fn invoke(options: &Options, name: &Ident, handler: &Handler, names: &Names) -> TokenStream {
    let acemq = names.acemq();
    let (invoke, context, message) = (names.item("invoke"), local("context"), local("message"));
    let (value, error) = (local("value"), local("error"));
    let kind = &handler.message;
    let read = read(options, kind, &acemq);
    let mut steps = quote! {
        let #message: #kind = match #read(&#context) {
            #acemq::Result::Ok(#value) => #value,
            #acemq::Result::Err(#error) => return #acemq::undecodable(&#error),
        };
    };
    let mut arguments = vec![message];
    for (place, kind) in handler.extractors.iter().enumerate() {
        let argument = local(&format!("argument_{}", place + 2));
        steps.extend(quote! {
            let #argument: #kind = match <#kind as #acemq::FromContext>::from_context(&#context).await {
                #acemq::Result::Ok(#value) => #value,
                #acemq::Result::Err(#error) => return #error.into_ack(),
            };
        });
        arguments.push(argument);
    }
    let called = if options.blocking.is_some() {
        quote!(#acemq::blocking(move || #name(#(#arguments),*)).await)
    } else {
        quote!(#name(#(#arguments),*).await)
    };
    let returned = local("returned");
    let into = into_ack(&handler.output, &acemq);
    // What is wrong with the whole call, such as a future that cannot change threads, is shown on the function's name.
    let body = blame::at(quote!({ #steps let #returned = #called; #into(#returned) }), name.span());
    let future = blame::at(quote!(async move), name.span());
    quote! {
        fn #invoke(#context: #acemq::Context) -> #acemq::Call {
            #acemq::call(#future #body)
        }
    }
}

/// The conversion of what the function returns, which is to be blamed on the type that stands there.
fn into_ack(output: &ReturnType, acemq: &Ident) -> TokenStream {
    match output {
        ReturnType::Type(_, kind) if !is_opaque(kind) => {
            quote!(<#kind as #acemq::IntoAck>::into_ack)
        }
        _ => quote!(#acemq::IntoAck::into_ack),
    }
}

fn is_opaque(kind: &Type) -> bool {
    kind.to_token_stream()
        .into_iter()
        .any(|token| matches!(&token, proc_macro2::TokenTree::Ident(word) if word == "impl"))
}

fn requires(handler: &Handler, names: &Names) -> TokenStream {
    let acemq = names.acemq();
    let (requires, requirements) = (names.item("requires"), local("requirements"));
    let kinds = &handler.extractors;
    if kinds.is_empty() {
        return quote!(fn #requires(_: &mut #acemq::Requirements) {});
    }
    quote! {
        fn #requires(#requirements: &mut #acemq::Requirements) {
            #(<#kinds as #acemq::FromContext>::requires(#requirements);)*
        }
    }
}
