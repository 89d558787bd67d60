//! What is counted and logged about messages.

mod bounded;
mod consume;
mod flood;
pub(crate) mod names;
mod publish;
pub(crate) mod span;
mod trace;

pub(crate) use consume::{ConsumerTelemetry, Settlement};
pub(crate) use flood::Flood;
pub(crate) use publish::{PublishOutcome, PublisherTelemetry};
