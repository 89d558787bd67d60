use std::time::Duration;

use super::*;
use crate::{
    handler::Ack,
    policy::RetryPolicy,
    registry::{ConsumerSpec, Idempotent, Location},
};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn consumer(name: &'static str, spec: ConsumerSpec) -> Registration {
    Registration {
        name,
        location: Location { file: "shop.rs", line: 7 },
        spec,
        requires: |_| {},
        invoke: |_| Box::pin(std::future::ready(Ack::Accept)),
    }
}

fn of(queue: &'static str) -> Registration {
    consumer(queue, ConsumerSpec::new(queue))
}

fn sharing(name: &'static str, settings: Idempotent, retry: RetryPolicy) -> Registration {
    let idempotent = Some(Idempotent { scope: Scoped::Shared, ..settings });
    consumer(name, ConsumerSpec { retry, idempotent, ..ConsumerSpec::new(name) })
}

#[test]
fn consumers_that_have_nothing_in_common_are_fine() {
    assert_eq!(problems(&App::new(), &[of("orders"), of("invoices")]), [] as [&str; 0]);
    assert_eq!(problems(&App::new().expect_consumers(2), &[of("orders"), of("invoices")]), [] as [&str; 0]);
}

#[test]
fn another_number_of_consumers_than_expected_is_named_with_those_that_are_there() {
    for (expected, remedy) in [
        (
            3,
            "if the others stand in another crate, name it in this one with `use that_crate as _;`, or the linker drops them",
        ),
        (1, "set the new number, so that the next one that is missing is noticed"),
    ] {
        let found = problems(&App::new().expect_consumers(expected), &[of("orders"), of("invoices")]);
        let text = format!(
            "`App::expect_consumers({expected})`, but the number of consumers is 2 (orders, invoices): {remedy}"
        );
        assert_eq!(found, [text]);
    }
}

#[test]
fn without_any_consumer_only_that_is_said() {
    let found = problems(&App::new().expect_consumers(3), &[]);
    assert!(matches!(found.as_slice(), [only] if only.contains("use that_crate as _;")), "{found:?}");
}

#[test]
fn settings_that_no_attribute_would_accept_are_refused() {
    let wrong = ConsumerSpec { prefetch: 0, timeout: Some(s(0)), ..ConsumerSpec::new("orders") };
    assert_eq!(
        problems(&App::new(), &[consumer("by-hand", wrong)]),
        [
            "consumer `by-hand` (shop.rs:7): `prefetch` must be at least 1: zero means no limit at all to the broker",
            "consumer `by-hand` (shop.rs:7): `timeout` must be longer than zero; leave it out for no limit",
        ]
    );
}

#[test]
fn a_queue_that_another_consumer_waits_or_sets_aside_in_is_not_taken() {
    let retry = RetryPolicy::fixed(3, s(60));
    let owner = consumer("owner", ConsumerSpec { retry, ..ConsumerSpec::new("orders") });
    for queue in ["orders.retry.1m", "orders.dlq", "orders.parked"] {
        assert_eq!(
            problems(&App::new(), &[of(queue), owner]),
            [format!(
                "consumer `{queue}` (shop.rs:7) takes queue `{queue}`, which acemq declares for consumer `owner` (shop.rs:7): \
                 name another queue"
            )]
        );
    }
    let found = problems(&App::new(), &[of("orders.retry.2m"), owner]);
    assert!(matches!(found.as_slice(), [only] if only.contains("are declared by acemq itself")), "{found:?}");
}

#[test]
fn a_queue_and_a_name_belong_to_one_consumer() {
    let second = consumer("second", ConsumerSpec::new("orders"));
    let third = consumer("orders", ConsumerSpec::new("invoices"));
    assert_eq!(
        problems(&App::new(), &[of("orders"), second, third]),
        [
            "queue `orders` has 2 consumers, `orders` (shop.rs:7) and `second` (shop.rs:7): each message goes to one of them by \
             chance; let one consumer take the queue, or give each a queue of its own",
            "2 consumers are named `orders`, `orders` (shop.rs:7) and `orders` (shop.rs:7): logs, health and metrics cannot tell \
             them apart; give each a `name` of its own",
        ]
    );
}

#[test]
fn one_consumer_that_is_listed_twice_is_one_problem() {
    let found = problems(&App::new(), &[of("orders"), of("orders"), of("orders")]);
    assert!(matches!(found.as_slice(), [only] if only.contains("has 3 consumers, such as")), "{found:?}");
}

#[test]
fn what_is_remembered_outlasts_the_retries_of_whoever_shares_the_keys() {
    let short = Idempotent { retention: s(3_600), ..Idempotent::DEFAULT };
    let slow = RetryPolicy::fixed(4, s(7_200));
    let forgets = sharing("forgets", short, RetryPolicy::none());
    let retries = sharing("retries", Idempotent::DEFAULT, slow);
    assert_eq!(
        problems(&App::new(), &[forgets, retries]),
        [
            "consumer `forgets` (shop.rs:7) remembers what it handled for 1h, but shares its keys with `retries` (shop.rs:7), whose \
          retries take 6h: a copy that waits there would be handled again; lengthen its `retention`, or use `scope = queue`"
        ]
    );
    let elsewhere = sharing("retries", Idempotent { store: Some("other"), ..Idempotent::DEFAULT }, slow);
    let alone = consumer("alone", ConsumerSpec { retry: slow, ..ConsumerSpec::new("alone") });
    let fast = sharing("retries", Idempotent::DEFAULT, RetryPolicy::fixed(4, s(1_200)));
    for other in [elsewhere, alone, fast] {
        assert_eq!(problems(&App::new(), &[forgets, other]), [] as [&str; 0], "{}", other.name);
    }
}

#[test]
fn everything_is_said_at_once() {
    struct Missing;
    let mut stateful = consumer("stateful", ConsumerSpec { prefetch: 0, ..ConsumerSpec::new("orders") });
    stateful.requires = |requirements| requirements.state::<Missing>();
    let found = problems(&App::new().expect_consumers(3), &[stateful, of("orders")]);
    let parts = ["expect_consumers(3)", "`prefetch`", "State<", "has 2 consumers"];
    assert_eq!(found.len(), parts.len(), "{found:?}");
    for (problem, part) in found.iter().zip(parts) {
        assert!(problem.contains(part), "{problem}");
    }
}
