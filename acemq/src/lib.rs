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

// What runs it
mod app;
mod drain;
pub mod engine;
mod error;
pub mod health;
mod publisher;
mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;

#[doc(hidden)]
pub mod __private;

#[cfg(feature = "macros")]
pub use acemq_macros::{Classify, Message, consumer, consumers};
pub use app::{App, CRASH_LIMIT, DRAIN_TIMEOUT, GRACE, OnRefusal, Running, run};
pub use drain::Drained;
pub use error::Error;
pub use handler::{
    Ack, Classify, Context, ExtractError, Fatal, FromContext, FromMessage, Message, MessageType, Raw, State, Text,
    fatal,
};
pub use policy::RetryPolicy;
pub use publisher::{Publication, Publisher, Receipt, SendError};
