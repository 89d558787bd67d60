//! Settlement: what becomes of a delivery, and the tasks that see to it.

mod account;
mod backoff;
mod claims;
mod consumer;
mod driver;
mod gate;
mod hop;
mod link;
mod machine;
mod reason;

pub use account::{Present, Totals};
pub(crate) use claims::Claims;
pub(crate) use consumer::{Consumer, Life, Parts, Phase, Refusal};
pub(crate) use link::Link;
pub use machine::Outcome;
pub(crate) use machine::{Facts, Note};
