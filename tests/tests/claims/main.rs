//! Claims: the rules that all stores follow, what happens when a database does not play along, and what consumers make of it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test reports by a panic, in its helpers too"
)]

mod board;
mod check;
mod conformance;
mod counts;
mod deadlocks;
mod handling;
mod interleavings;
mod lanes;
mod leases;
mod outages;
mod patchy;
mod processes;
mod purge;
mod rabbit;
mod sharing;
mod starting;
mod stops;
mod stores;
mod transaction;
mod tx;
