//! Settlement: what becomes of a delivery, and the tasks that see to it.

mod account;
mod backoff;
mod claims;
mod consumer;
mod driver;
mod gate;
mod hop;
mod inside;
mod link;
mod machine;
mod origin;
mod reason;
mod totals;

pub(crate) use account::Snapshot;
pub use account::{Oldest, Present};
pub(crate) use claims::Claims;
pub(crate) use consumer::{Consumer, Life, Parts, Phase, Refusal};
pub(crate) use inside::{inside, inside_any};
pub(crate) use link::Link;
pub use machine::Outcome;
pub(crate) use machine::{Facts, Note};
pub use totals::{Returned, Totals};
