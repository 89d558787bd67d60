//! The names that are derived from a queue's; no other place spells one.

use std::time::Duration;

use crate::policy::render;

/// The exchange through which the broker itself dead-letters.
pub const DEAD_LETTER_EXCHANGE: &str = "acemq.dlx";

/// The exchange through which retries come home from their rungs.
pub const RETRY_EXCHANGE: &str = "acemq.retry";

/// Bytes that a name may have: AMQP writes it as a short string.
pub const LONGEST_NAME: usize = 255;

/// Where messages go that nobody will try again.
#[must_use]
pub fn dead_letter_queue(queue: &str) -> String {
    format!("{queue}.dlq")
}

/// Where messages go that a person has to look at.
#[must_use]
pub fn parking_queue(queue: &str) -> String {
    format!("{queue}.parked")
}

/// Where retries wait for `delay`.
#[must_use]
pub fn rung_queue(queue: &str, delay: Duration) -> String {
    format!("{queue}.retry.{}", render(delay))
}
