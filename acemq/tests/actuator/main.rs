//! Health, metrics and information over HTTP, on the embedded broker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod client;
mod health;
mod metrics;
mod server;
