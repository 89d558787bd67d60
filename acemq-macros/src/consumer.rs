//! `#[consumer(…)]` on a function.

use proc_macro2::TokenStream;

use crate::{
    args::Options,
    errors::Errors,
    expand::expand,
    fallback,
    function::{Function, Role},
};

/// Reads the attribute and the function, and writes what they become.
pub(crate) fn consumer(attribute: TokenStream, item: &TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let Some(function) = Function::read(item.clone()) else {
        return fallback::other(item, errors);
    };
    let options = Options::read(attribute, None, &mut errors);
    let handler = function.handler(Role::Free, options.blocking.as_ref(), &mut errors);
    match handler {
        Some(handler) if errors.is_empty() => expand(&options, &function, &handler),
        _ => fallback::function(&options, &function, errors),
    }
}
