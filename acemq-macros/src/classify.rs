//! `#[derive(Classify)]`: what each kind of error means for the message.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Fields, Meta, Path, Variant};

use crate::{
    args::Take,
    blame,
    entries::{Known, Shape, Table},
    errors::Errors,
    names::{Names, local},
    values::{self, Length},
};

const CRATE: Known = Known::new("crate", Shape::Value, "crate = my_crate::acemq");

static RETRY: Table = Table {
    of: Some("retry"),
    known: &[Known::new("after", Shape::Value, r#"after = "30s""#)],
    instead: &[("delay", "that is `after`"), ("attempts", "the number of tries is the policy's")],
    lone_text: Some("after"),
    positional: 0,
};

static CONTAINER: Table = Table { of: Some("classify"), known: &[CRATE], instead: &[], lone_text: None, positional: 0 };

/// What an error means for its message.
enum Class {
    Fatal,
    Park,
    Retry { after: Option<Length> },
}

/// Reads the error and writes what it becomes.
pub(crate) fn derive(item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let input = match syn::parse2::<DeriveInput>(item) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let krate = container(&input, &mut errors);
    if !input.generics.params.is_empty() {
        let generics = &input.generics;
        errors.on(
            quote!(#generics),
            "a classified error cannot be generic: it is looked for by its type; classify the type behind it",
        );
    }
    let names = Names::alone(krate.as_ref());
    let (acemq, private, name) = (names.acemq(), names.private(), &input.ident);
    let mut writer = Writer { acemq: acemq.clone(), names: &names, checks: TokenStream::new(), delays: 0 };
    let body = writer.body(&input, &mut errors);
    let checks = writer.checks;
    if !errors.is_empty() {
        return errors.into_tokens();
    }
    let (error, class) = (local("error"), names.item("class"));
    quote! {
        #[allow(unused_imports)]
        const _: () = {
            use #private as #acemq;

            #checks

            #[automatically_derived]
            impl #acemq::Classify for #name {
                fn class(&self) -> #acemq::Option<#acemq::Class> {
                    use #acemq::Unclassified as _;
                    #body
                }
            }

            fn #class(#error: &(dyn #acemq::StdError + 'static)) -> #acemq::Option<#acemq::Class> {
                #acemq::class_of::<#name>(#error)
            }

            #acemq::inventory::submit! { #acemq::Classifier(#class) }
        };
    }
}

/// Writes the classes of one type.
struct Writer<'a> {
    acemq: Ident,
    names: &'a Names,
    checks: TokenStream,
    delays: usize,
}

impl Writer<'_> {
    fn body(&mut self, input: &DeriveInput, errors: &mut Errors) -> TokenStream {
        let own = class(&input.attrs, errors);
        match &input.data {
            Data::Enum(data) => {
                let default = own.map(|class| self.value(&class));
                let arms: Vec<TokenStream> =
                    data.variants.iter().map(|variant| self.arm(variant, default.as_ref(), errors)).collect();
                if arms.is_empty() {
                    return quote!(match *self {});
                }
                quote!(match self { #(#arms)* })
            }
            Data::Struct(_) => {
                if own.is_none() {
                    errors.on(
                        &input.ident,
                        "say what this error means: `#[fatal]`, `#[park]` or `#[retry(after = \"30s\")]` on the type",
                    );
                }
                own.map(|class| self.value(&class)).unwrap_or_default()
            }
            Data::Union(data) => {
                errors.on(data.union_token, "a union cannot be an error: classify a struct or an enum");
                TokenStream::new()
            }
        }
    }

    fn arm(&mut self, variant: &Variant, default: Option<&TokenStream>, errors: &mut Errors) -> TokenStream {
        let (acemq, name) = (self.acemq.clone(), &variant.ident);
        if let Some(class) = class(&variant.attrs, errors) {
            let value = self.value(&class);
            return quote!(Self::#name { .. } => #value,);
        }
        if let Some(default) = default {
            return quote!(Self::#name { .. } => #default,);
        }
        // What wraps another error, and may be transparent to whoever walks the chain, means what that one means.
        let inner = local("inner");
        let inside = quote!(#acemq::Inside(#inner).class());
        match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => quote!(Self::#name(#inner) => #inside,),
            Fields::Named(fields) if fields.named.len() == 1 => {
                match fields.named.first().and_then(|field| field.ident.as_ref()) {
                    Some(field) => quote!(Self::#name { #field: #inner } => #inside,),
                    None => TokenStream::new(),
                }
            }
            _ => quote!(Self::#name { .. } => #acemq::Option::None,),
        }
    }

    fn value(&mut self, class: &Class) -> TokenStream {
        let acemq = self.acemq.clone();
        let class = match class {
            Class::Fatal => quote!(#acemq::Class::Fatal),
            Class::Park => quote!(#acemq::Class::Park),
            Class::Retry { after: None } => quote!(#acemq::Class::Retry { after: #acemq::Option::None }),
            Class::Retry { after: Some(after) } => {
                self.delays += 1;
                let constant = self.names.item(&format!("AFTER_{}", self.delays));
                let (value, exact) = match after {
                    Length::Text(text) => (
                        quote!(#acemq::or(#acemq::parse(#text), #acemq::MOMENT)),
                        blame::call(quote!(#acemq::duration), quote!(#text), text),
                    ),
                    Length::Constant(value) => (quote!(#value), quote!(#constant)),
                };
                let check = blame::call(quote!(#acemq::check::after), exact, after);
                self.checks.extend(quote!(const #constant: #acemq::Duration = #value; const _: () = #check;));
                quote!(#acemq::Class::Retry { after: #acemq::Option::Some(#constant) })
            }
        };
        quote!(#acemq::Option::Some(#class))
    }
}

/// The class that the attributes name, if they name one.
fn class(attributes: &[Attribute], errors: &mut Errors) -> Option<Class> {
    let mut found = None;
    for attribute in attributes {
        let class = if attribute.path().is_ident("fatal") {
            alone(attribute, "fatal", errors).then_some(Class::Fatal)
        } else if attribute.path().is_ident("park") {
            alone(attribute, "park", errors).then_some(Class::Park)
        } else if attribute.path().is_ident("retry") {
            retry(attribute, errors)
        } else {
            continue;
        };
        if found.is_some() {
            errors.on(attribute, "an error is one of `#[fatal]`, `#[retry]` and `#[park]`, not two");
        }
        found = found.or(class);
    }
    found
}

fn alone(attribute: &Attribute, word: &str, errors: &mut Errors) -> bool {
    if matches!(attribute.meta, Meta::Path(_)) {
        return true;
    }
    errors.on(attribute, format_args!("`#[{word}]` takes no settings: write it alone"));
    false
}

fn retry(attribute: &Attribute, errors: &mut Errors) -> Option<Class> {
    let tokens = match &attribute.meta {
        Meta::Path(_) => return Some(Class::Retry { after: None }),
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(_) => {
            errors.on(attribute, "`#[retry]` is written alone or with a delay, as in `#[retry(after = \"30s\")]`");
            return None;
        }
    };
    let mut entries = RETRY.read(tokens, errors);
    let mut take = Take { table: &RETRY, entries: &mut entries, errors };
    Some(Class::Retry { after: take.with("after", values::length) })
}

/// What `#[classify(…)]` says of the whole type.
fn container(input: &DeriveInput, errors: &mut Errors) -> Option<Path> {
    let attribute = input.attrs.iter().find(|attribute| attribute.path().is_ident("classify"))?;
    let Meta::List(list) = &attribute.meta else {
        errors.on(attribute, "`#[classify]` takes settings, as in `#[classify(crate = my_crate::acemq)]`");
        return None;
    };
    let mut entries = CONTAINER.read(list.tokens.clone(), errors);
    let mut take = Take { table: &CONTAINER, entries: &mut entries, errors };
    take.with("crate", values::module)
}
