//! `#[derive(Message)]`: the logical name and the version of a message type.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{DeriveInput, Expr, Meta, Path};

use crate::{
    args::Take,
    blame,
    entries::{Entries, Known, Shape, Table},
    errors::Errors,
    names::Names,
    values,
};

pub(crate) static SETTINGS: Table = Table {
    of: Some("message"),
    known: &[
        Known::new("type", Shape::Value, r#"type = "order.placed""#),
        Known::new("version", Shape::Value, "version = 2"),
        Known::new("crate", Shape::Value, "crate = my_crate::acemq"),
    ],
    instead: &[("name", "that is `type`"), ("kind", "that is `type`")],
    lone_text: Some("type"),
    positional: 0,
};

/// What `#[message(…)]` says.
struct Settings {
    kind: Option<Expr>,
    version: Option<Expr>,
    krate: Option<Path>,
}

/// Reads the type and writes what it becomes.
pub(crate) fn derive(item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let input = match syn::parse2::<DeriveInput>(item) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let settings = Settings::read(&input, &mut errors);
    let names = Names::alone(settings.krate.as_ref());
    let (acemq, private) = (names.acemq(), names.private());
    let name = &input.ident;
    let (parameters, arguments, bounds) = input.generics.split_for_impl();
    let mut checks = TokenStream::new();
    let mut constant = |name: &str, kind: TokenStream, check: TokenStream, value: &Expr| {
        let name = names.item(name);
        let check = blame::call(quote!(#acemq::check::#check), quote!(#name), value);
        checks.extend(quote!(const #name: #kind = #value; const _: () = #check;));
        quote!(#name)
    };
    let kind = settings.kind.as_ref().map(|kind| constant("TYPE", quote!(&str), quote!(message_type), kind));
    let version = settings.version.as_ref();
    let version = version.map(|version| constant("VERSION", quote!(u32), quote!(message_version), version));
    // Without a type there is an error already; without a version it is the first.
    let (kind, version) = (kind.unwrap_or_else(|| quote!("")), version.unwrap_or_else(|| quote!(1)));
    let errors = errors.into_tokens();
    quote! {
        #errors

        const _: () = {
            use #private as #acemq;

            #checks

            #[automatically_derived]
            impl #parameters #acemq::MessageType for #name #arguments #bounds {
                const TYPE: &'static str = #kind;
                const VERSION: u32 = #version;
            }
        };
    }
}

impl Settings {
    fn read(input: &DeriveInput, errors: &mut Errors) -> Self {
        let mut tokens = None;
        let mut malformed = false;
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("message")) {
            match &attribute.meta {
                _ if tokens.is_some() => errors.on(attribute, "`#[message(…)]` is given twice"),
                Meta::List(list) => tokens = Some(list.tokens.clone()),
                Meta::Path(_) | Meta::NameValue(_) => {
                    malformed = true;
                    errors.on(
                        attribute,
                        "`#[message]` takes settings, as in `#[message(type = \"order.placed\", version = 2)]`",
                    );
                }
            }
        }
        let mut entries = match tokens {
            Some(tokens) => SETTINGS.read(tokens, errors),
            None => Entries::default(),
        };
        if entries.lacks("type") && !malformed {
            errors.at(
                Span::call_site(),
                "a message needs the name of its type: `#[message(type = \"order.placed\")]` beside the derive",
            );
        }
        let mut take = Take { table: &SETTINGS, entries: &mut entries, errors };
        Self {
            kind: take.with("type", values::text),
            version: take.with("version", |known, tokens, errors| values::number(known, tokens, u32::MAX, errors)),
            krate: take.with("crate", values::module),
        }
    }
}
