//! The names of what is generated.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::Path;

/// Names that no function of the user's can share: they begin with more underscores than its own name does.
pub(crate) struct Names {
    prefix: String,
    root: TokenStream,
}

impl Names {
    /// Names for what stands beside nothing of the user's.
    pub(crate) fn alone(krate: Option<&Path>) -> Self {
        Self { prefix: "__".to_owned(), root: root(krate) }
    }

    /// Names for what stands beside `function`, with acemq at `krate` or at its own name.
    pub(crate) fn beside(function: &Ident, krate: Option<&Path>) -> Self {
        let own = function.to_string().chars().take_while(|letter| *letter == '_').count();
        Self { prefix: "_".repeat((own + 1).max(2)), root: root(krate) }
    }

    /// The name of an item.
    pub(crate) fn item(&self, name: &str) -> Ident {
        Ident::new(&format!("{}{name}", self.prefix), Span::mixed_site())
    }

    /// The name under which the expansion knows acemq.
    pub(crate) fn acemq(&self) -> Ident {
        self.item("acemq")
    }

    /// What expansions name, and the traits by which they choose.
    pub(crate) fn imports(&self) -> TokenStream {
        let (private, acemq) = (self.private(), self.acemq());
        quote!(use #private::{self as #acemq, ExpectsNothing as _, HidesNoError as _, NeedsNothing as _};)
    }

    /// The path of what expansions use.
    pub(crate) fn private(&self) -> TokenStream {
        let root = &self.root;
        quote!(#root::__private)
    }
}

fn root(krate: Option<&Path>) -> TokenStream {
    if let Some(path) = krate { path.to_token_stream() } else { quote!(::acemq) }
}

/// The name of a local variable, which the user's own code cannot see.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}
