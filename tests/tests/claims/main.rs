//! Claim stores on real databases: the rules that all stores follow, and what happens when a database does not play along.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test reports by a panic, in its helpers too"
)]

mod check;
mod conformance;
mod deadlocks;
mod lanes;
mod outages;
mod processes;
mod stores;
mod transaction;
