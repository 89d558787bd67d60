use std::time::Duration;

use acemq::policy::{Place, RetryPolicy};
use quote::quote;

use super::*;
use crate::errors::Errors;

fn options(tokens: TokenStream) -> Options {
    let mut errors = Errors::default();
    let options = Options::read(tokens, None, &mut errors);
    assert_eq!(errors.sentences(), [] as [String; 0]);
    options
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_documented_waits_are_those_of_the_policy() {
    for (tokens, policy) in [
        (quote!(), RetryPolicy::DEFAULT),
        (quote!(retry_delay = "1m"), RetryPolicy::unbounded(s(60))),
        (quote!(retry = none), RetryPolicy::none()),
        (quote!(retry = fixed(1, "5s")), RetryPolicy::fixed(1, s(5))),
        (quote!(retry = fixed(4, "30s")), RetryPolicy::fixed(4, s(30))),
        (quote!(retry = exponential(6, "10s", "1m")), RetryPolicy::exponential(6, s(10), s(60))),
        (
            quote!(retry = exponential(9, "700ms", "1d")),
            RetryPolicy::exponential(9, Duration::from_millis(700), s(86_400)),
        ),
        (
            quote!(retry = exponential(6, "10s", "1m", wait_in_broker_from = "0s")),
            RetryPolicy::exponential(6, s(10), s(60)).wait_in_broker_from(s(0)),
        ),
        (
            quote!(retry = fixed(attempts = 3, delay = "2h", wait_in_broker_from = "10s", jitter = 0.5)),
            RetryPolicy::fixed(3, s(7_200)).wait_in_broker_from(s(10)),
        ),
    ] {
        let schedule = Schedule::of(&options(quote!(queue = "q", #tokens))).unwrap();
        let expected: Vec<(u64, u64, bool)> = policy
            .schedule()
            .take(12)
            .map(|step| (u64::from(step.attempt) + 1, acemq::policy::millis(step.delay), step.place == Place::Broker))
            .collect();
        let documented: Vec<(u64, u64, bool)> = schedule
            .rows()
            .iter()
            .flat_map(|row| {
                let to = row.to.unwrap_or(u64::MAX).min(13);
                (row.from..=to).map(|delivery| (delivery, row.delay, row.in_broker))
            })
            .collect();
        assert_eq!(documented, expected, "{tokens}");
    }
}

#[test]
fn delays_are_written_as_in_the_names_of_queues() {
    for milliseconds in [0, 1, 999, 1_000, 45_500, 90_000, 3_600_000, 86_400_000] {
        assert_eq!(schedule::render(milliseconds), acemq::policy::render(Duration::from_millis(milliseconds)));
    }
}

#[test]
fn a_consumer_is_described_with_its_queue_its_schedule_and_its_claim() {
    let text = describe(&options(quote!(
        queue = "orders.placed",
        retry = exponential(4, "20s", "1m", give_up_after = "6h"),
        declare = quorum,
        bind = ("orders", "order.placed"),
        prefetch = 10,
        concurrency = LIMIT,
        timeout = limits::TIMEOUT,
        idempotent(claim = "2m"),
    )));
    assert_eq!(
        text,
        "
# Consumer

| | |
|---|---|
| queue | `orders.placed`, declared as a quorum queue, bound to `orders` with key `order.placed` |
| at once | LIMIT of 10 messages |
| time limit | `limits::TIMEOUT` |
| gives up | after 4 deliveries, or when 6h old, to `orders.placed.dlq` |
| duplicates | kept out: a claim lasts 2m, a handled message is remembered for 1d |

| delivery | after a wait of | spent in |
|---|---|---|
| 1 | | |
| 2 | 20s ± 20 % | the consumer |
| 3 | 40s | the broker: `orders.placed.retry.40s` |
| 4 | 1m | the broker: `orders.placed.retry.1m` |
"
    );
}

#[test]
fn a_first_wait_of_zero_takes_no_time_to_describe() {
    let text = describe(&options(quote!(queue = "q", retry = exponential(4_000_000_000, "0s", "1m"))));
    assert!(text.contains("| 2 to 4000000000 | 0ms"), "{text}");
}

#[test]
fn names_that_are_derived_from_a_constant_do_not_contain_its_own() {
    let text = describe(&options(quote!(queue = queues::ORDERS, retry = fixed(3, "1m"))));
    assert!(text.contains("to `{queue}.dlq`") && text.contains("the broker: `{queue}.retry.1m`"), "{text}");
}

#[test]
fn constants_are_shown_by_their_names() {
    for (tokens, expected) in [
        (quote!(retry = exponential(MAX, "1s", CAP)), "Retries: `exponential(MAX, 1s, CAP)`"),
        (quote!(retry = policies::SLOW), "Retries: `policies::SLOW`"),
        (quote!(retry_delay = WAIT), "Retries: without end, `WAIT` apart"),
    ] {
        let text = describe(&options(quote!(queue = queues::ORDERS, #tokens)));
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("| queue | `queues::ORDERS` |"), "{text}");
    }
}
