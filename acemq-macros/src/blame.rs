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

/// `<value as interface>` with `rest` behind it, all of which stands, for the compiler, where `value` does.
pub(crate) fn qualified(value: &impl ToTokens, interface: impl ToTokens, rest: TokenStream) -> TokenStream {
    let (first, last) = ends(value);
    let mut tokens = at(quote!(<), first);
    tokens.extend(quote!(#value as #interface>));
    tokens.extend(at(rest, last));
    tokens
}

/// The place of the word that names a type.
///
/// For what is awaited: the compiler looks at a call and at its `await` apart, and mentions a mistake once only if both stand
/// in one place, which can be no longer than a word.
pub(crate) fn name(kind: &impl ToTokens) -> Span {
    let last = syn::parse2::<syn::Path>(kind.to_token_stream()).ok().and_then(|path| path.segments.last().cloned());
    last.map_or_else(|| ends(kind).0, |segment| segment.ident.span())
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
