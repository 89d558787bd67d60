//! Declarative RabbitMQ consumers.

pub mod envelope;
pub mod idempotency;
pub mod topology;
pub mod transport;
