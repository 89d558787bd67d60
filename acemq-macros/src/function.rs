//! The function under the attribute: what may be asked of it, and what it may not be.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, FnArg, GenericParam, Meta, Pat, PatType, Receiver, ReceiverKind, ReturnType, Safety, Signature, Token,
    Type, Visibility,
    parse::{Parse, ParseStream, Parser},
};

use crate::errors::Errors;

/// A function as it was written: only its head is looked at, so that a body being typed does no harm.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    /// All that follows the attributes.
    pub(crate) rest: TokenStream,
    has_body: bool,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let rest: TokenStream = input.fork().parse()?;
        let visibility = input.parse()?;
        let signature = input.parse()?;
        let has_body = !input.peek(Token![;]);
        input.parse::<TokenStream>()?;
        Ok(Self { attributes, visibility, signature, rest, has_body })
    }
}

/// Where a function stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// By itself.
    Free,
    /// In an `impl` with `#[consumers]`.
    Method,
}

/// What a consumer is called with and what it returns.
pub(crate) struct Handler {
    pub(crate) message: Type,
    pub(crate) extractors: Vec<Type>,
    pub(crate) output: ReturnType,
}

impl Function {
    pub(crate) fn read(item: TokenStream) -> Option<Self> {
        Parser::parse2(Self::parse, item).ok()
    }

    /// Looks for all that a consumer cannot be.
    pub(crate) fn handler(&self, role: Role, blocking: Option<&Ident>, errors: &mut Errors) -> Option<Handler> {
        let signature = &self.signature;
        self.qualifiers(blocking, errors);
        self.generics(errors);
        self.other_attributes(errors);
        if role == Role::Free && self.receiver().is_some() {
            receives(role, self.receiver(), signature, errors);
            return None;
        }
        if !self.has_body {
            errors.on(&signature.ident, "a consumer needs a body to run: put the attribute on the implementation");
        }
        let receiver_fits = receives(role, self.receiver(), signature, errors);
        let types: Vec<Option<Type>> = signature
            .inputs
            .iter()
            .filter_map(|input| match input {
                FnArg::Typed(argument) => Some(argument),
                FnArg::Receiver(_) => None,
            })
            .map(|argument| owned(argument, errors))
            .collect();
        if types.is_empty() && receiver_fits {
            errors.on(
                &signature.ident,
                "a consumer takes its message as the first argument; for one that does not matter, write `_: acemq::Raw`",
            );
        }
        let mut types = types.into_iter().collect::<Option<Vec<_>>>()?.into_iter();
        Some(Handler { message: types.next()?, extractors: types.collect(), output: signature.output.clone() })
    }

    /// What a method takes as `self`.
    pub(crate) fn receiver(&self) -> Option<&Receiver> {
        match self.signature.inputs.first() {
            Some(FnArg::Receiver(receiver)) => Some(receiver),
            _ => None,
        }
    }

    fn qualifiers(&self, blocking: Option<&Ident>, errors: &mut Errors) {
        let signature = &self.signature;
        match (signature.asyncness.is_some(), blocking) {
            (false, None) => errors.on(
                signature.fn_token,
                "a consumer is an `async fn`: add `async` before `fn`, or `blocking` to the attribute",
            ),
            (true, Some(_)) => errors.on(
                signature.asyncness,
                "a `blocking` consumer is an ordinary `fn`, run off the async threads: remove `async`, or `blocking`",
            ),
            _ => {}
        }
        if let Some(constness) = &signature.constness {
            errors.on(constness, "a consumer cannot be `const`: it runs when a message comes");
        }
        if let Safety::Unsafe(unsafety) = &signature.safety {
            errors.on(unsafety, "a consumer cannot be `unsafe`: acemq calls it and can promise nothing");
        }
        if let Some(abi) = &signature.abi {
            errors.on(abi, "a consumer has no ABI of its own: remove `extern`");
        }
        if let Some(variadic) = &signature.variadic {
            errors.on(variadic, "a consumer takes a fixed number of arguments");
        }
    }

    fn generics(&self, errors: &mut Errors) {
        let generics = &self.signature.generics;
        if generics.params.is_empty() {
            if let Some(clause) = &generics.where_clause {
                errors.on(clause, "a consumer has nothing to bound: remove the `where` clause");
            }
            return;
        }
        let parameters = quote_generics(generics);
        if generics.params.iter().all(|parameter| matches!(parameter, GenericParam::Lifetime(_))) {
            errors.on(
                parameters,
                "a consumer borrows nothing, since it outlives the call that made its arguments: remove the lifetime",
            );
        } else {
            errors.on(
                parameters,
                "a consumer cannot be generic: it is registered once, for one message type; write one small consumer for each type, and let them call the generic function",
            );
        }
    }

    fn other_attributes(&self, errors: &mut Errors) {
        for attribute in &self.attributes {
            let Some(name) = attribute.path().segments.last() else {
                continue;
            };
            if name.ident == "consumer" {
                errors.on(attribute, "one function consumes one queue: for a second queue write a second function");
            }
            if name.ident == "test" {
                errors.on(attribute, "a consumer is no test: write a test that calls the function");
            }
        }
    }

    /// The conditions under which the function is compiled.
    pub(crate) fn conditions(&self) -> Vec<&Attribute> {
        conditions(&self.attributes)
    }
}

/// The attributes that say under which conditions something is compiled.
pub(crate) fn conditions(attributes: &[Attribute]) -> Vec<&Attribute> {
    attributes
        .iter()
        .filter(|attribute| {
            attribute.path().is_ident("cfg")
                || (attribute.path().is_ident("cfg_attr") && sets_condition(&attribute.meta))
        })
        .collect()
}

/// Whether a `cfg_attr` puts a `cfg`.
fn sets_condition(meta: &Meta) -> bool {
    let Meta::List(list) = meta else { return false };
    let mut after_comma = false;
    list.tokens.clone().into_iter().any(|token| match token {
        TokenTree::Punct(punct) if punct.as_char() == ',' => {
            after_comma = true;
            false
        }
        TokenTree::Ident(word) => std::mem::take(&mut after_comma) && word == "cfg",
        _ => false,
    })
}

fn quote_generics(generics: &syn::Generics) -> TokenStream {
    let (open, parameters, close) = (&generics.lt_token, &generics.params, &generics.gt_token);
    quote!(#open #parameters #close)
}

fn receives(role: Role, receiver: Option<&Receiver>, signature: &Signature, errors: &mut Errors) -> bool {
    match (role, receiver) {
        (Role::Free, None) => true,
        (Role::Free, Some(receiver)) => {
            errors.on(receiver, "a method is registered through its `impl`: put `#[acemq::consumers]` on the block");
            false
        }
        (Role::Method, Some(receiver)) if is_shared(receiver) => true,
        (Role::Method, Some(receiver)) => {
            errors.on(receiver, "a consumer method takes `&self`: one service answers many messages at once");
            false
        }
        (Role::Method, None) => {
            errors.on(
                &signature.ident,
                "a consumer method takes `&self`; a function without it stands outside the `impl`, with `#[acemq::consumer(…)]`",
            );
            false
        }
    }
}

fn is_shared(receiver: &Receiver) -> bool {
    matches!(&receiver.kind, ReceiverKind::Reference(_, None, None))
}

/// The type of an argument, if it owns what it holds.
fn owned(argument: &PatType, errors: &mut Errors) -> Option<Type> {
    let mut found = &*argument.ty;
    while let Type::Group(group) = found {
        found = &group.elem;
    }
    match found {
        Type::Reference(reference) => {
            errors.on(found, in_place_of_reference(&reference.elem));
            return None;
        }
        Type::ImplTrait(_) | Type::Infer(_) => {
            errors.on(found, "name the type: acemq chooses how to make an argument by its type");
            return None;
        }
        _ => {}
    }
    if let Some(borrow) = borrows(found.to_token_stream()) {
        errors.on(
            borrow,
            "a consumer owns its arguments, since it outlives the call that made them: let the type own its data, such as `String` in place of `&str`",
        );
        return None;
    }
    if let Pat::Ident(pattern) = &*argument.pat
        && let Some(by_ref) = &pattern.by_ref
    {
        errors.on(by_ref, "a consumer owns its arguments: remove `ref`");
        return None;
    }
    Some((*argument.ty).clone())
}

fn in_place_of_reference(target: &Type) -> String {
    let text = target.to_token_stream().to_string();
    let owned = match text.as_str() {
        "str" => "String".to_owned(),
        "[u8]" => "acemq::Raw".to_owned(),
        other => other.replace(" :: ", "::").replace(" < ", "<").replace(" >", ">"),
    };
    format!("a consumer owns its arguments, since it outlives the call that made them: take `{owned}`")
}

/// The first sign of a borrow in a type, leaving out the parentheses of function types.
fn borrows(tokens: TokenStream) -> Option<TokenStream> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '&' => {
                return Some(token.to_token_stream());
            }
            TokenTree::Punct(punct) if punct.as_char() == '\'' => {
                let name = tokens.get(place + 1);
                if !matches!(name, Some(TokenTree::Ident(name)) if name == "static") {
                    return Some(quote!(#token #name));
                }
            }
            TokenTree::Group(group) if group.delimiter() != Delimiter::Parenthesis => {
                if let Some(found) = borrows(group.stream()) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}
