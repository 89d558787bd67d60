//! The attributes of acemq, which re-exports and documents them.

mod args;
mod blame;
mod classify;
mod constants;
mod consumer;
mod docs;
mod entries;
mod errors;
mod expand;
mod fallback;
mod function;
mod message;
mod names;
mod retry;
mod service;
mod suggest;
mod values;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod expansion;

use proc_macro::TokenStream;

/// Makes a consumer of an `async fn`: it is registered, and runs for each message of its queue.
#[proc_macro_attribute]
pub fn consumer(attribute: TokenStream, item: TokenStream) -> TokenStream {
    consumer::consumer(attribute.into(), &item.into()).into()
}

/// Makes consumers of the methods of a service that have `#[consumer(…)]`.
#[proc_macro_attribute]
pub fn consumers(attribute: TokenStream, item: TokenStream) -> TokenStream {
    service::consumers(attribute.into(), &item.into()).into()
}

/// Gives a message type its logical name and version.
#[proc_macro_derive(Message, attributes(message))]
pub fn message(item: TokenStream) -> TokenStream {
    message::derive(item.into()).into()
}

/// Says what each kind of an error means for the message.
#[proc_macro_derive(Classify, attributes(fatal, retry, park, classify))]
pub fn classify(item: TokenStream) -> TokenStream {
    classify::derive(item.into()).into()
}
