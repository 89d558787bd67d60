//! Health, metrics and information over HTTP, on the embedded broker.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::float_cmp,
    unreachable_pub,
    reason = "a test that cannot go on fails, and has no interface"
)]

mod client;
mod health;
mod metrics;
mod server;
