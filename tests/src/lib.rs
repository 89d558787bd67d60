//! The harness of acemq's live tests: private servers, a fault proxy, and what it takes to look at them.
//!
//! Everything that it starts is its own: on free ports of the loopback interface, in a temporary directory, gone
//! when the value is dropped and also when the test process is killed. It never talks to a server that it did not
//! start. `scripts/test.sh` says where the servers are and installs the missing ones.
//!
//! A live test fails when its server is missing. Only `ACEMQ_TEST_WITHOUT` leaves servers out, by name; see
//! [`needs!`].

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a harness reports every failure by a panic, so that the test that called it fails"
)]
#![allow(
    clippy::must_use_candidate,
    reason = "an attribute on every accessor of a harness says nothing that its users need"
)]

pub mod needs;
pub mod server;
pub mod wait;

mod keeper;
mod ports;

pub mod amqp;
pub mod database;
pub mod process;
pub mod proxy;
pub mod rabbitmq;

pub use wait::{eventually, unique};
