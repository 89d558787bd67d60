//! Puts generated code where a value stands, so that the compiler points there when the code does not hold.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};

/// The first and the last place of some tokens.
fn ends(tokens: &impl ToTokens) -> (Span, Span) {
    let mut tokens = tokens.to_token_stream().into_iter();
    let first = tokens.next().map_or_else(Span::call_site, |token| token.span());
    let last = tokens.last().map_or(first, |token| token.span());
    (first, last)
}

/// A call of `function` that stands, for the compiler, exactly where `value` does.
pub(crate) fn call(function: TokenStream, arguments: TokenStream, value: &impl ToTokens) -> TokenStream {
    let (first, last) = ends(value);
    let mut call = at(function, first);
    let mut group = Group::new(Delimiter::Parenthesis, arguments);
    group.set_span(last);
    call.extend([TokenTree::Group(group)]);
    call
}

/// `call` followed by `rest`, which stands where `value` ends.
pub(crate) fn then(mut call: TokenStream, rest: TokenStream, value: &impl ToTokens) -> TokenStream {
    call.extend(at(rest, ends(value).1));
    call
}

/// `<value as interface>` with `rest` behind it, all of which stands, for the compiler, where `value` does.
pub(crate) fn qualified(value: &impl ToTokens, interface: impl ToTokens, rest: TokenStream) -> TokenStream {
    let (first, last) = ends(value);
    let mut tokens = at(quote!(<), first);
    value.to_tokens(&mut tokens);
    tokens.extend(quote!(as #interface>));
    tokens.extend(at(rest, last));
    tokens
}

/// The same tokens at another place; what is inside of parentheses stays where it is.
pub(crate) fn at(tokens: TokenStream, span: Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut token| {
            token.set_span(span);
            token
        })
        .collect()
}
