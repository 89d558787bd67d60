//! Moving a message: the copy that is published in place of the original.

use bytes::Bytes;

use super::machine::{Move, Redeliveries, Target};
use crate::{
    envelope::{Properties, Table, Value, count, headers, headers::Number, now_ms},
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
    let read = |name| match headers.get(name).map(headers::number) {
        Some(Number::Whole(number)) => Some(u32::try_from(number).unwrap_or(u32::MAX)),
        _ => None,
    };
    match read("x-delivery-count") {
        Some(count) => Redeliveries::Counted(count),
        // A quorum queue of 4.3 counts what it hands out apart from what came back by a loss.
        None if !redelivered || headers.contains_key("x-acquired-count") => Redeliveries::Counted(0),
        None => Redeliveries::Uncounted(read(REDELIVERIES).unwrap_or(0)),
    }
}

/// A message as it came, of which copies are made.
pub(crate) struct Original<'a> {
    pub(crate) queue: &'a str,
    pub(crate) properties: &'a Properties,
    pub(crate) body: &'a Bytes,
    /// Whether the envelope made sense.
    pub(crate) readable: bool,
}

/// How much a copy says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remarks {
    /// Everything.
    Full,
    /// Nothing that can be left out: the headers of the original fill the frame as they are.
    Spare,
}

impl Original<'_> {
    /// The copy for another place.
    ///
    /// It keeps the body, every property and every header with its type, except what [`BROKER_HEADERS`] lists and these
    /// properties: `expiration`, which would end the copy's life or its wait early; `user_id`, which the broker refuses from
    /// anybody but that user; and `delivery_mode`, since what acemq moves is always persistent.
    pub(crate) fn copy(&self, to: &Move, remarks: Remarks) -> Outgoing {
        let mut properties = self.properties.clone();
        properties.expiration = None;
        properties.user_id = None;
        properties.delivery_mode = Some(2);
        for name in BROKER_HEADERS {
            properties.headers.remove(name);
        }
        // Their handler came to an end: what was counted before says nothing any more.
        properties.headers.remove(REDELIVERIES);
        properties.headers.remove(headers::ERROR);
        self.remark(&mut properties.headers, to, remarks);
        Outgoing {
            exchange: String::new(),
            routing_key: target(self.queue, to.target),
            mandatory: true,
            properties,
            body: self.body.clone(),
        }
    }

    fn remark(&self, table: &mut Table, to: &Move, remarks: Remarks) {
        let spare = remarks == Remarks::Spare;
        // A senseless attempt stays as it is, for whoever looks at the message.
        if self.readable && !(spare && to.reason.is_some()) {
            table.insert(headers::ATTEMPT.to_owned(), count(to.attempt));
        }
        if spare {
            return;
        }
        // The age of a message counts from somewhere: a foreign one's from its first move.
        if !table.contains_key(headers::FIRST_SEEN) {
            let now = i64::try_from(now_ms()).unwrap_or(i64::MAX);
            table.insert(headers::FIRST_SEEN.to_owned(), Value::I64(now));
        }
        if to.redeliveries > 0 {
            table.insert(REDELIVERIES.to_owned(), count(to.redeliveries));
        }
        if let Some(reason) = &to.reason {
            table.insert(headers::ERROR.to_owned(), Value::from(cut(reason.to_string())));
        }
    }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::engine::reason::Reason;

    fn copy(headers: Table, to: &Move, remarks: Remarks) -> Outgoing {
        let properties = Properties {
            headers,
            expiration: Some("300".to_owned()),
            user_id: Some("guest".to_owned()),
            delivery_mode: Some(1),
            ..Properties::default()
        };
        let body = Bytes::from_static(b"body");
        Original { queue: "orders", properties: &properties, body: &body, readable: true }.copy(to, remarks)
    }

    fn to(target: Target, reason: Option<Reason>) -> Move {
        Move { target, attempt: 3, reason, redeliveries: 0 }
    }

    #[test]
    fn what_belongs_to_the_broker_or_changes_the_life_of_a_copy_is_left_out() {
        let headers = BROKER_HEADERS.iter().map(|name| ((*name).to_owned(), Value::from("x"))).collect();
        let copy = copy(headers, &to(Target::Rung(Duration::from_secs(30)), None), Remarks::Full);
        let names: Vec<&str> = copy.properties.headers.keys().map(String::as_str).collect();
        assert_eq!(names, ["x-acemq-attempt", "x-acemq-first-seen"]);
        assert_eq!((copy.properties.expiration, copy.properties.user_id), (None, None));
        assert_eq!(copy.properties.delivery_mode, Some(2));
        assert_eq!((copy.exchange.as_str(), copy.routing_key.as_str(), copy.mandatory), ("", "orders.retry.30s", true));
    }

    #[test]
    fn a_reason_of_a_megabyte_is_cut_and_an_earlier_one_does_not_survive_a_retry() {
        let reason = Reason::Rejected("€".repeat(350_000));
        let dead = copy(Table::new(), &to(Target::DeadLetter, Some(reason)), Remarks::Full);
        let Some(Value::LongString(text)) = dead.properties.headers.get(headers::ERROR) else { panic!("no reason") };
        assert!(text.len() <= crate::handler::LONGEST_REASON);
        let again = copy(dead.properties.headers, &to(Target::Source, None), Remarks::Full);
        assert!(!again.properties.headers.contains_key(headers::ERROR));
    }

    #[test]
    fn a_spare_copy_adds_nothing_to_what_is_set_aside_and_only_the_attempt_to_a_retry() {
        let dead = copy(Table::new(), &to(Target::DeadLetter, Some(Reason::NoId)), Remarks::Spare);
        assert!(dead.properties.headers.is_empty());
        let retry = copy(Table::new(), &to(Target::Source, None), Remarks::Spare);
        assert_eq!(retry.properties.headers, Table::from([(headers::ATTEMPT.to_owned(), Value::I32(3))]));
    }

    #[test]
    fn redeliveries_are_the_brokers_count_or_else_the_messages() {
        let table = |entries: &[(&str, i64)]| {
            entries.iter().map(|(name, value)| ((*name).to_owned(), Value::I64(*value))).collect::<Table>()
        };
        for (redelivered, headers, expected) in [
            (false, table(&[]), Redeliveries::Counted(0)),
            (true, table(&[("x-delivery-count", 4)]), Redeliveries::Counted(4)),
            (true, table(&[("x-acquired-count", 4)]), Redeliveries::Counted(0)),
            (true, table(&[]), Redeliveries::Uncounted(0)),
            (true, table(&[(REDELIVERIES, 6)]), Redeliveries::Uncounted(6)),
            (false, table(&[(REDELIVERIES, 6)]), Redeliveries::Counted(0)),
            (true, table(&[("x-delivery-count", -1)]), Redeliveries::Counted(u32::MAX)),
        ] {
            assert_eq!(super::redeliveries(redelivered, &headers), expected, "{headers:?}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i8>().prop_map(Value::I8),
            any::<u16>().prop_map(Value::U16),
            any::<i32>().prop_map(Value::I32),
            any::<i64>().prop_map(Value::I64),
            (-1e9..1e9).prop_map(Value::F64),
            any::<u64>().prop_map(Value::Timestamp),
            ".{0,20}".prop_map(Value::from),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Value::LongString(bytes.into())),
            Just(Value::Void),
        ];
        leaf.prop_recursive(3, 20, 5, |inner| {
            let table = prop::collection::btree_map("[a-z-]{1,8}", inner.clone(), 0..5);
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(Value::Array),
                table.prop_map(|entries| Value::Table(entries.into_iter().collect())),
            ]
        })
    }

    fn header() -> impl Strategy<Value = String> {
        let listed = prop::sample::select(&BROKER_HEADERS[..]).prop_map(str::to_owned);
        prop_oneof![4 => "[a-zA-Z][a-z-]{0,12}", 1 => "x-acemq-[a-z]{1,8}", 1 => listed]
    }

    fn properties() -> impl Strategy<Value = Properties> {
        let text = || prop::option::of(".{0,30}");
        let texts = (text(), text(), text(), text(), text(), text(), text(), text());
        let numbers = (any::<Option<u8>>(), any::<Option<u8>>(), any::<Option<u64>>());
        (prop::collection::btree_map(header(), value(), 0..8), texts, text(), text(), numbers).prop_map(
            |(headers, texts, expiration, user_id, (delivery_mode, priority, timestamp))| {
                let (content_type, content_encoding, correlation_id, reply_to, message_id, kind, app_id, cluster_id) =
                    texts;
                Properties {
                    content_type,
                    content_encoding,
                    headers: headers.into_iter().collect(),
                    delivery_mode,
                    priority,
                    correlation_id,
                    reply_to,
                    expiration,
                    message_id,
                    timestamp,
                    kind,
                    user_id,
                    app_id,
                    cluster_id,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn a_copy_differs_from_its_original_in_what_is_listed_and_in_nothing_else(properties in properties()) {
            let body = Bytes::from_static(b"body");
            let original = Original { queue: "orders", properties: &properties, body: &body, readable: true };
            let copy = original.copy(&to(Target::Source, None), Remarks::Full);
            let mut headers = properties.headers.clone();
            headers.retain(|name, _| !BROKER_HEADERS.contains(&name.as_str()) && name != headers::ERROR);
            headers.remove(REDELIVERIES);
            headers.insert(headers::ATTEMPT.to_owned(), Value::I32(3));
            if !headers.contains_key(headers::FIRST_SEEN) {
                let first = copy.properties.headers.get(headers::FIRST_SEEN).cloned();
                prop_assert!(matches!(first, Some(Value::I64(_))));
                headers.extend(first.map(|first| (headers::FIRST_SEEN.to_owned(), first)));
            }
            let delivery_mode = Some(2);
            let expected = Properties { headers, delivery_mode, expiration: None, user_id: None, ..properties.clone() };
            prop_assert_eq!(copy.properties, expected);
            prop_assert_eq!(copy.body, body);
        }
    }
}
