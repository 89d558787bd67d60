//! What an annotated function does when it is called as the engine calls it.
#![cfg(all(feature = "macros", feature = "json"))]
// What the consumers of a test do is not what those of a service do.
#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value, clippy::unused_async)]

mod calls;
mod classes;
mod settings;
mod types;

use std::sync::Arc;

use acemq::{
    Ack, Context,
    envelope::{Envelope, Properties, Value},
    handler::{Delivered, Scope},
    registry::Registration,
};

/// A message with this body, and these headers of the library.
fn delivered(body: &str, headers: &[(&str, Value)]) -> Delivered {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let properties = Properties { headers, ..Properties::default() };
    Delivered {
        queue: "orders".into(),
        consumer: "test".into(),
        exchange: String::new(),
        routing_key: "orders".to_owned(),
        redelivered: false,
        envelope: Envelope::read(&properties, "orders").unwrap(),
        properties,
        body: body.to_owned().into(),
    }
}

fn context(delivered: Delivered, scope: Scope) -> Context {
    Context::new(Arc::new(delivered), Arc::new(scope), tokio_util::sync::CancellationToken::new())
}

/// Calls a consumer with a body of JSON.
async fn call(consumer: &Registration, body: &str) -> Ack {
    call_in(consumer, body, Scope::default()).await
}

async fn call_in(consumer: &Registration, body: &str, scope: Scope) -> Ack {
    (consumer.invoke)(context(delivered(body, &[]), scope)).await
}
