//! The attributes of acemq, which re-exports and documents them.

#![allow(missing_docs)] // what is documented in both places is shown twice

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
#[cfg(test)]
mod reference;

use proc_macro::TokenStream;

#[proc_macro_attribute]
pub fn consumer(attribute: TokenStream, item: TokenStream) -> TokenStream {
    consumer::consumer(attribute.into(), &item.into()).into()
}

#[proc_macro_attribute]
pub fn consumers(attribute: TokenStream, item: TokenStream) -> TokenStream {
    service::consumers(attribute.into(), &item.into()).into()
}

#[proc_macro_derive(Message, attributes(message))]
pub fn message(item: TokenStream) -> TokenStream {
    message::derive(item.into()).into()
}

#[proc_macro_derive(Classify, attributes(fatal, retry, park, classify))]
pub fn classify(item: TokenStream) -> TokenStream {
    classify::derive(item.into()).into()
}
