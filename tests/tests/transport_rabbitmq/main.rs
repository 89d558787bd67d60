//! The transport for RabbitMQ against 3.10 and 4.x: what it promises above lapin.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a failure by a panic"
)]

mod bench;
mod consuming;
mod declaring;
mod faults;
mod lifetime;
mod opening;
mod publishing;
mod strangers;
mod tls;
