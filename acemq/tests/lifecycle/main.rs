//! Pausing, draining, stopping and closing, on the embedded broker and mostly in paused time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::float_cmp,
    unreachable_pub,
    reason = "a test that cannot go on fails, and has no interface"
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
