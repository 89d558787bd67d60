//! The harness can be trusted: what it starts does what its methods say, and is gone afterwards.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not the functions that they call"
)]

mod database;
mod process;
mod rabbitmq;
