//! Pausing, draining, stopping and closing, on the embedded broker and mostly in paused time.

// A test that cannot go on fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::default_trait_access,
    unused_must_use,
    unreachable_pub
)]

mod account;
mod bench;
mod close;
mod drain;
mod drop;
mod hooks;
mod inside;
mod pause;
mod publish;
mod scale;
mod stop;
