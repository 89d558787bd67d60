//! Every mistake of one attribute, so that all are shown at once.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// Collects mistakes, each on its own tokens.
#[derive(Default)]
pub(crate) struct Errors(Vec<syn::Error>);

impl Errors {
    /// Adds a mistake on these tokens.
    pub(crate) fn on(&mut self, tokens: impl ToTokens, sentence: impl std::fmt::Display) {
        self.0.push(syn::Error::new_spanned(tokens, sentence));
    }

    /// Adds a mistake at a place.
    pub(crate) fn at(&mut self, span: Span, sentence: impl std::fmt::Display) {
        self.0.push(syn::Error::new(span, sentence));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them for the compiler.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0.iter().map(syn::Error::to_compile_error).collect()
    }

    /// All sentences, for tests.
    #[cfg(test)]
    pub(crate) fn sentences(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}
