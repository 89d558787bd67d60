//! From a consumer's settings to its declarations.

use std::time::Duration;

use super::{
    Declaration, ExchangeKind,
    names::{DEAD_LETTER_EXCHANGE, RETRY_EXCHANGE, dead_letter_queue, parking_queue, rung_queue},
};
use crate::{
    envelope::{Table, Value},
    policy::millis,
    registry::{ConsumerSpec, QueueKind, RungKind},
};

/// Everything that has to be on the broker before a consumer subscribes, in the order in which it is declared.
///
/// The source queue comes first, since a rung whose target is missing loses what waits in it.
#[must_use]
pub fn plan(spec: &ConsumerSpec, rungs: RungKind) -> Vec<Declaration> {
    let queue = spec.queue;
    let mut plan = vec![exchange(DEAD_LETTER_EXCHANGE)];
    for aside in [dead_letter_queue(queue), parking_queue(queue)] {
        plan.push(Declaration::Queue { name: aside.clone(), arguments: Table::new() });
        plan.push(bound(&aside, DEAD_LETTER_EXCHANGE, &aside));
    }
    plan.insert(0, source(queue, spec.declare));
    // Two waits of one length share a queue.
    let delays: Vec<Duration> = spec.retry.broker_rungs().collect();
    if !delays.is_empty() {
        plan.push(exchange(RETRY_EXCHANGE));
        plan.push(bound(queue, RETRY_EXCHANGE, queue));
        for delay in delays {
            plan.push(Declaration::Queue { name: rung_queue(queue, delay), arguments: rung(queue, delay, rungs) });
        }
    }
    plan.extend(spec.bind.iter().map(|bind| bound(queue, bind.exchange, bind.routing_key)));
    plan
}

fn exchange(name: &str) -> Declaration {
    Declaration::Exchange { name: name.to_owned(), kind: ExchangeKind::Direct }
}

fn bound(queue: &str, exchange: &str, routing_key: &str) -> Declaration {
    Declaration::Binding { queue: queue.to_owned(), exchange: exchange.to_owned(), routing_key: routing_key.to_owned() }
}

fn source(queue: &str, declare: Option<QueueKind>) -> Declaration {
    let name = queue.to_owned();
    let Some(kind) = declare else {
        return Declaration::QueueExists { name };
    };
    let mut arguments = Table::new();
    // A classic queue names no type: with one, the next library of the family would be refused.
    if kind == QueueKind::Quorum {
        arguments.insert("x-queue-type".to_owned(), Value::from("quorum"));
    }
    arguments.insert("x-dead-letter-exchange".to_owned(), Value::from(DEAD_LETTER_EXCHANGE));
    arguments.insert("x-dead-letter-routing-key".to_owned(), Value::from(dead_letter_queue(queue)));
    Declaration::Queue { name, arguments }
}

fn rung(queue: &str, delay: Duration, kind: RungKind) -> Table {
    let ttl = i64::try_from(millis(delay)).unwrap_or(i64::MAX);
    let mut arguments = Table::from([
        ("x-message-ttl".to_owned(), Value::I64(ttl)),
        ("x-dead-letter-exchange".to_owned(), Value::from(RETRY_EXCHANGE)),
        ("x-dead-letter-routing-key".to_owned(), Value::from(queue)),
    ]);
    if kind == RungKind::Quorum {
        arguments.insert("x-queue-type".to_owned(), Value::from("quorum"));
        arguments.insert("x-dead-letter-strategy".to_owned(), Value::from("at-least-once"));
        arguments.insert("x-overflow".to_owned(), Value::from("reject-publish"));
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        policy::{RetryPolicy, duration},
        registry::Bind,
    };

    fn names(plan: &[Declaration]) -> Vec<String> {
        plan.iter().map(ToString::to_string).collect()
    }

    fn arguments(plan: &[Declaration], queue: &str) -> Vec<String> {
        plan.iter()
            .find_map(|declaration| match declaration {
                Declaration::Queue { name, arguments } if name == queue => {
                    Some(arguments.iter().map(|(name, value)| format!("{name}={value:?}")).collect())
                }
                _ => None,
            })
            .unwrap()
    }

    #[test]
    fn a_consumer_without_rungs_declares_where_failures_go_and_nothing_more() {
        assert_eq!(
            names(&plan(&ConsumerSpec::new("orders"), RungKind::Quorum)),
            [
                "queue `orders`",
                "exchange `acemq.dlx`",
                "queue `orders.dlq`",
                "the binding of queue `orders.dlq` to exchange `acemq.dlx` on `orders.dlq`",
                "queue `orders.parked`",
                "the binding of queue `orders.parked` to exchange `acemq.dlx` on `orders.parked`",
            ]
        );
    }

    #[test]
    fn rungs_bring_their_exchange_and_the_way_home() {
        let spec = ConsumerSpec {
            retry: RetryPolicy::exponential(6, duration("10s"), duration("1m")),
            declare: Some(QueueKind::Quorum),
            bind: &[Bind { exchange: "shop", routing_key: "order.*" }],
            ..ConsumerSpec::new("orders")
        };
        let plan = plan(&spec, RungKind::Quorum);
        assert_eq!(
            names(&plan)[6..],
            [
                "exchange `acemq.retry`",
                "the binding of queue `orders` to exchange `acemq.retry` on `orders`",
                "queue `orders.retry.40s`",
                "queue `orders.retry.1m`",
                "the binding of queue `orders` to exchange `shop` on `order.*`",
            ]
        );
        assert_eq!(
            arguments(&plan, "orders"),
            [
                r#"x-dead-letter-exchange=LongString(b"acemq.dlx")"#,
                r#"x-dead-letter-routing-key=LongString(b"orders.dlq")"#,
                r#"x-queue-type=LongString(b"quorum")"#,
            ]
        );
        assert_eq!(
            arguments(&plan, "orders.retry.40s"),
            [
                r#"x-dead-letter-exchange=LongString(b"acemq.retry")"#,
                r#"x-dead-letter-routing-key=LongString(b"orders")"#,
                r#"x-dead-letter-strategy=LongString(b"at-least-once")"#,
                "x-message-ttl=I64(40000)",
                r#"x-overflow=LongString(b"reject-publish")"#,
                r#"x-queue-type=LongString(b"quorum")"#,
            ]
        );
        assert_eq!(arguments(&plan, "orders.dlq"), [] as [&str; 0]);
    }

    #[test]
    fn a_classic_rung_has_the_three_arguments_of_the_family() {
        let spec = ConsumerSpec {
            retry: RetryPolicy::fixed(3, duration("90s")),
            declare: Some(QueueKind::Classic),
            ..ConsumerSpec::new("orders")
        };
        let plan = plan(&spec, RungKind::Classic);
        assert_eq!(
            arguments(&plan, "orders.retry.90s"),
            [
                r#"x-dead-letter-exchange=LongString(b"acemq.retry")"#,
                r#"x-dead-letter-routing-key=LongString(b"orders")"#,
                "x-message-ttl=I64(90000)",
            ]
        );
        assert!(arguments(&plan, "orders").iter().all(|argument| !argument.starts_with("x-queue-type")));
    }
}
