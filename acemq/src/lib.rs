//! Declarative RabbitMQ consumers.

// What a consumer function is made of
pub mod envelope;
pub mod handler;
pub mod policy;
pub mod registry;

// What it runs on
pub mod idempotency;
pub mod topology;
pub mod transport;

#[doc(hidden)]
pub mod __private;

pub use handler::{
    Ack, Context, ExtractError, Fatal, FromContext, FromMessage, Message, Raw, State, Text, fatal,
};
pub use policy::RetryPolicy;
