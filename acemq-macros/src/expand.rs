//! What a correct attribute becomes.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{ReturnType, Type};

use crate::{
    args::Options,
    blame,
    constants::Constants,
    docs,
    function::{Function, Handler},
    names::{Names, local},
    values::spoken,
};

/// The function as it was, a type of its name, and the registration.
pub(crate) fn expand(options: &Options, function: &Function, handler: &Handler) -> TokenStream {
    let Function { attributes, rest, visibility, signature, .. } = function;
    let name = &signature.ident;
    let names = Names::beside(name, options.krate.as_ref());
    let conditions = function.conditions();
    let docs = docs::of(options);
    let asked_for = docs::asked_for(options);
    let imports = names.imports();
    let (acemq, constant) = (names.acemq(), names.item("REGISTRATION"));
    let target = Target { call: quote!(#name), name, spoken: spoken(name), service: None };
    let Registration { items, value } = registration(options, &target, handler, &names);
    quote! {
        #(#attributes)*
        #docs
        #asked_for
        #rest

        #(#conditions)*
        #[doc(hidden)]
        #[allow(
            non_camel_case_types, dead_code, missing_copy_implementations, missing_debug_implementations,
            clippy::empty_structs_with_brackets, clippy::exhaustive_structs
        )]
        #visibility struct #name {}

        #(#conditions)*
        #[allow(deprecated, unused_imports, clippy::all, clippy::pedantic, clippy::nursery)]
        const _: () = {
            #imports

            #items

            const #constant: #acemq::Registration = #value;

            #acemq::inventory::submit! { #constant }

            #[automatically_derived]
            impl #acemq::Consumer for #name {
                const REGISTRATION: #acemq::Registration = #constant;
            }
        };
    }
}

/// What is registered: a function, or a method of a service.
pub(crate) struct Target<'a> {
    /// The path that is called.
    pub(crate) call: TokenStream,
    pub(crate) name: &'a Ident,
    /// The name behind the module path, for people.
    pub(crate) spoken: String,
    /// The type whose method it is.
    pub(crate) service: Option<TokenStream>,
}

/// A registration as an expression, and the items that it needs.
pub(crate) struct Registration {
    pub(crate) items: TokenStream,
    pub(crate) value: TokenStream,
}

pub(crate) fn registration(options: &Options, target: &Target<'_>, handler: &Handler, names: &Names) -> Registration {
    let acemq = names.acemq();
    let Constants { mut items, fields, queue, title, .. } = Constants::new(options, names);
    let expansion = Expansion { options, target, handler, names };
    let key = expansion.key();
    let invoke = expansion.invoke();
    let requires = expansion.requires();
    items.extend(quote!(#key #invoke #requires));

    let spoken = &target.spoken;
    let title = title.unwrap_or_else(|| quote!(::core::concat!(::core::module_path!(), "::", #spoken)));
    let file = blame::at(quote!(::core::file!()), target.name.span());
    let line = blame::at(quote!(::core::line!()), target.name.span());
    let (invoke, requires) = (names.item("invoke"), names.item("requires"));
    let value = quote! {
        #acemq::Registration {
            name: #title,
            location: #acemq::Location { file: #file, line: #line },
            spec: #acemq::ConsumerSpec { #fields ..#acemq::ConsumerSpec::new(#queue) },
            requires: #requires,
            invoke: #invoke,
        }
    };
    Registration { items, value }
}

/// All that the functions behind a registration follow from.
struct Expansion<'a> {
    options: &'a Options,
    target: &'a Target<'a>,
    handler: &'a Handler,
    names: &'a Names,
}

impl Expansion<'_> {
    /// The function that takes the key of a claim from a message.
    fn key(&self) -> Option<TokenStream> {
        let path = self.options.idempotent.as_ref()?.key.as_ref()?;
        let acemq = self.names.acemq();
        let (key, context, message) = (self.names.item("key"), local("context"), local("message"));
        let (value, error) = (local("value"), local("error"));
        let read = self.read(&quote!(#context));
        let called = blame::call(quote!(#path), quote!(&#message), path);
        let called = blame::call(quote!(#acemq::key), called, path);
        Some(quote! {
            fn #key(#context: &#acemq::Context) -> #acemq::Result<#acemq::String, #acemq::DecodeError> {
                let #message = match #read {
                    #acemq::Result::Ok(#value) => #value,
                    #acemq::Result::Err(#error) => return #acemq::Result::Err(#error),
                };
                #acemq::Result::Ok(#called)
            }
        })
    }

    /// A call that reads the message out of `context`.
    fn read(&self, context: &TokenStream) -> TokenStream {
        let acemq = self.names.acemq();
        let codec = self.options.codec.as_ref();
        let codec = codec.map(|codec| blame::qualified(codec, quote!(#acemq::CodecType), quote!(::Itself)));
        let codec = codec.unwrap_or_else(|| quote!(#acemq::DefaultCodec));
        let rest = quote!(::from_message(#context));
        blame::qualified(&self.handler.message, quote!(#acemq::FromMessage<#codec>), rest)
    }

    /// The function that calls the user's.
    fn invoke(&self) -> TokenStream {
        let acemq = self.names.acemq();
        let (invoke, context) = (self.names.item("invoke"), local("context"));
        let steps = self.steps();
        let place = self.target.name.span();
        // What is wrong with the whole call, such as a future that cannot change threads, is shown on the function's name.
        let future = blame::at(quote!(async move { #steps }), place);
        let call = blame::at(quote!(#acemq::call(#future)), place);
        quote! {
            fn #invoke(#context: #acemq::Context) -> #acemq::Call {
                #call
            }
        }
    }

    /// Makes the arguments one after the other, calls, and looks at what comes back.
    fn steps(&self) -> TokenStream {
        let acemq = self.names.acemq();
        let (context, message, returned) = (local("context"), local("message"), local("returned"));
        let (value, error, refusal) = (local("value"), local("error"), local("refusal"));
        let kind = &self.handler.message;
        let read = self.read(&quote!(&#context));
        let mut steps = quote! {
            if let #acemq::Option::Some(#refusal) = #acemq::unexpected(&#context, #acemq::Expects::<#kind>::MESSAGE) {
                return #refusal;
            }
            let #message: #kind = match #read {
                #acemq::Result::Ok(#value) => #value,
                #acemq::Result::Err(#error) => return #acemq::undecodable(&#error),
            };
        };
        let mut arguments = vec![quote!(#message)];
        let mut take = |name: String, kind: TokenStream, from: TokenStream| {
            let argument = local(&name);
            steps.extend(quote! {
                let #argument: #kind = match #from {
                    #acemq::Result::Ok(#value) => #value,
                    #acemq::Result::Err(#error) => return #error.into_ack(),
                };
            });
            argument
        };
        if let Some(service) = &self.target.service {
            let from = blame::at(quote!(#acemq::service(&#context).await), blame::name(service));
            let service = take("service".to_owned(), quote!(#acemq::Arc<#service>), from);
            arguments.insert(0, quote!(&#service));
        }
        for (place, kind) in self.handler.extractors.iter().enumerate() {
            let from = blame::at(quote!(#acemq::argument(&#context).await), blame::name(kind));
            let argument = take(format!("argument_{}", place + 2), quote!(#kind), from);
            arguments.push(quote!(#argument));
        }
        let call = &self.target.call;
        let called = if self.options.blocking.is_some() {
            quote!(#acemq::blocking(move || #call(#(#arguments),*)).await)
        } else {
            quote!(#call(#(#arguments),*).await)
        };
        let decide = self.decide(&returned);
        quote!(#steps let #returned = #called; #decide)
    }

    /// The conversion of what the function returns, which is to be blamed on the type that stands there.
    fn decide(&self, returned: &Ident) -> TokenStream {
        let acemq = self.names.acemq();
        let (ack, kind) = match &self.handler.output {
            ReturnType::Default => return quote!(#acemq::IntoAck::into_ack(#returned)),
            ReturnType::Type(_, kind) => (local("ack"), kind),
        };
        let into_ack = if is_opaque(kind) {
            quote!(#acemq::IntoAck::into_ack(#returned))
        } else {
            blame::qualified(kind, quote!(#acemq::IntoAck), quote!(::into_ack(#returned)))
        };
        quote! {
            match #acemq::Returned(&#returned).hidden() {
                #acemq::Option::Some(#ack) => #ack,
                #acemq::Option::None => #into_ack,
            }
        }
    }

    /// The function that names what the application has to provide.
    fn requires(&self) -> TokenStream {
        let acemq = self.names.acemq();
        let (requires, requirements) = (self.names.item("requires"), local("requirements"));
        let kinds = &self.handler.extractors;
        let service = self.target.service.as_ref();
        let service = service.map(|service| quote!(#acemq::requires_service::<#service>(#requirements);));
        if kinds.is_empty() && service.is_none() {
            return quote!(fn #requires(_: &mut #acemq::Requirements) {});
        }
        quote! {
            fn #requires(#requirements: &mut #acemq::Requirements) {
                #service
                #((#acemq::Needs::<#kinds>::NOTE)(#requirements);)*
            }
        }
    }
}

fn is_opaque(kind: &Type) -> bool {
    kind.to_token_stream().into_iter().any(|token| matches!(&token, TokenTree::Ident(word) if word == "impl"))
}
