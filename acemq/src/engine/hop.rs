//! Moving a message: the copy that is published in place of the original.

use super::machine::{Move, Redeliveries, Target};
use crate::{
    envelope::{Properties, Table, Value, headers, headers::Number},
    handler::cut,
    topology::{dead_letter_queue, parking_queue, rung_queue},
    transport::Outgoing,
};

/// Headers that belong to the broker, and why a copy must not carry them.
const BROKER_HEADERS: [&str; 12] = [
    // RabbitMQ counts on from these when a client sends them back (3.x), or drops them (4.x): either way they would lie.
    "x-death",
    "x-first-death-exchange",
    "x-first-death-queue",
    "x-first-death-reason",
    "x-last-death-exchange",
    "x-last-death-queue",
    "x-last-death-reason",
    // Redeliveries of the original, not of the copy.
    "x-delivery-count",
    "x-acquired-count",
    // These make the broker route the copy to further queues, as the publisher's publish did before.
    "CC",
    "BCC",
    // Where the deduplication plug-in is on, a queue drops a second message with the same value, and confirms it.
    "x-deduplication-header",
];

/// How often the broker took a message back, on queues where it does not count itself.
const REDELIVERIES: &str = "x-acemq-redeliveries";

/// How often the broker has taken a message back.
pub(crate) fn redeliveries(redelivered: bool, headers: &Table) -> Redeliveries {
    let count = |name| match headers.get(name).map(headers::number) {
        Some(Number::Whole(number)) => Some(u32::try_from(number).unwrap_or(u32::MAX)),
        _ => None,
    };
    match count("x-delivery-count") {
        Some(count) => Redeliveries::Counted(count),
        // A quorum queue of 4.3 counts what it hands out apart from what came back by a loss.
        None if !redelivered || headers.contains_key("x-acquired-count") => Redeliveries::Counted(0),
        None => Redeliveries::Uncounted(count(REDELIVERIES).unwrap_or(0)),
    }
}

/// The copy of a message for another place.
///
/// It keeps the body, every property and every header with its type, except what [`BROKER_HEADERS`] lists and these
/// properties: `expiration`, which would end the copy's life or its wait early; `user_id`, which the broker refuses from
/// anybody but that user; and `delivery_mode`, since what acemq moves is always persistent.
pub(crate) fn copy(queue: &str, original: &Properties, readable: bool, body: bytes::Bytes, to: &Move) -> Outgoing {
    let mut properties = original.clone();
    properties.expiration = None;
    properties.user_id = None;
    properties.delivery_mode = Some(2);
    for name in BROKER_HEADERS {
        properties.headers.remove(name);
    }
    let table = &mut properties.headers;
    // A senseless attempt stays as it is, for whoever looks at the message.
    if readable {
        table.insert(headers::ATTEMPT.to_owned(), crate::envelope::count(to.attempt));
    }
    // The age of a message counts from somewhere: a foreign one's from its first move.
    if !table.contains_key(headers::FIRST_SEEN) {
        let now = i64::try_from(crate::envelope::now_ms()).unwrap_or(i64::MAX);
        table.insert(headers::FIRST_SEEN.to_owned(), Value::I64(now));
    }
    if to.redeliveries > 0 {
        table.insert(REDELIVERIES.to_owned(), crate::envelope::count(to.redeliveries));
    } else {
        // Its handler came to an end: what was counted before says nothing any more.
        table.remove(REDELIVERIES);
    }
    match &to.reason {
        Some(reason) => {
            table.insert(headers::ERROR.to_owned(), Value::from(cut(reason.to_string())));
        }
        None => {
            table.remove(headers::ERROR);
        }
    }
    Outgoing { exchange: String::new(), routing_key: target(queue, to.target), mandatory: true, properties, body }
}

/// The queue of a target.
pub(crate) fn target(queue: &str, target: Target) -> String {
    match target {
        Target::Source => queue.to_owned(),
        Target::Rung(delay) => rung_queue(queue, delay),
        Target::DeadLetter => dead_letter_queue(queue),
        Target::Parked => parking_queue(queue),
    }
}
