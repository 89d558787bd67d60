//! Puts generated code where a value stands, so that the compiler points there when the code does not hold.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::ToTokens;

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

/// The same tokens at another place.
pub(crate) fn at(tokens: TokenStream, span: Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|mut token| {
            token.set_span(span);
            token
        })
        .collect()
}
