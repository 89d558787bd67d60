//! The vocabulary of the metrics: the same in every library of the family.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

pub(crate) const PUBLISH_TOTAL: &str = "acemq.publish.total";
pub(crate) const PUBLISH_DURATION: &str = "acemq.publish.duration";
pub(crate) const CONSUME_TOTAL: &str = "acemq.consume.total";
pub(crate) const CONSUME_DURATION: &str = "acemq.consume.duration";
pub(crate) const CONSUME_ATTEMPTS: &str = "acemq.consume.attempts";
pub(crate) const CONSUME_IN_FLIGHT: &str = "acemq.consume.in.flight";
pub(crate) const RETRIED: &str = "acemq.messages.retried.total";
pub(crate) const DEAD_LETTERED: &str = "acemq.messages.dead.lettered.total";
pub(crate) const SET_ASIDE_FAILED: &str = "acemq.messages.set.aside.failed";
pub(crate) const RUNG_MISSING: &str = "acemq.retry.rung.missing";
/// Not of the family: what a claim store did not do.
pub(crate) const CLAIMS: &str = "acemq.claims.total";

pub(crate) const QUEUE: &str = "queue";
pub(crate) const EXCHANGE: &str = "exchange";
pub(crate) const ROUTING_KEY: &str = "routing.key";
pub(crate) const MESSAGE_TYPE: &str = "message.type";
pub(crate) const OUTCOME: &str = "outcome";
pub(crate) const TARGET: &str = "target";
pub(crate) const RUNG: &str = "rung";

/// The value of a label whose values have become too many.
pub(crate) const OTHER: &str = "other";

/// Tells the recorder what the metrics mean, and which of them are seconds.
pub(crate) fn describe() {
    describe_counter!(PUBLISH_TOTAL, "Publishes of the application, by what became of them");
    describe_histogram!(PUBLISH_DURATION, Unit::Seconds, "From the call of a publish to its answer");
    describe_counter!(CONSUME_TOTAL, "Deliveries, by what became of them; each is counted once, at its settlement");
    describe_histogram!(CONSUME_DURATION, Unit::Seconds, "How long handlers ran");
    describe_histogram!(CONSUME_ATTEMPTS, "The attempt that a handled delivery was");
    describe_gauge!(CONSUME_IN_FLIGHT, "Handlers that run now");
    describe_counter!(RETRIED, "Messages that failed and are tried again");
    describe_counter!(DEAD_LETTERED, "Messages that are in a dead-letter or parking queue");
    describe_counter!(SET_ASIDE_FAILED, "Copies that could not be made; the original went back to its queue");
    describe_counter!(RUNG_MISSING, "Waits spent in the consumer because the queue for them was missing");
    describe_counter!(CLAIMS, "Deliveries that were not protected from duplicates as they should have been");
}
