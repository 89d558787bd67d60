//! Health, metrics and information over HTTP, on the embedded broker.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::float_cmp)]
#![allow(clippy::too_many_lines, clippy::unchecked_time_subtraction, unused_must_use, unreachable_pub)]

mod client;
mod health;
mod metrics;
mod server;
