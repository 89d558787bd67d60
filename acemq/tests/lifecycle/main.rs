//! Pausing, draining, stopping and closing, on the embedded broker and mostly in paused time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

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
