//! The attributes of acemq, which re-exports and documents them.

mod args;
mod blame;
mod constants;
mod consumer;
mod entries;
mod errors;
mod expand;
mod fallback;
mod function;
mod names;
mod retry;
mod suggest;
mod values;

use proc_macro::TokenStream;

/// Makes a consumer of an `async fn`: it is registered, and runs for each message of its queue.
#[proc_macro_attribute]
pub fn consumer(attribute: TokenStream, item: TokenStream) -> TokenStream {
    consumer::consumer(attribute.into(), item.into()).into()
}
