use std::time::Duration;

use acemq::{
    Message, Raw, RetryPolicy, consumer,
    policy::duration,
    registry::{self, Bind, Consumer, ConsumerSpec, Idempotent, NoId, QueueKind, RungKind, Scoped},
};

use super::{Scope, context, delivered};

mod limits {
    use std::time::Duration;

    pub(super) const QUEUE: &str = "named";
    pub(super) const ATTEMPTS: u32 = 4;
    pub(super) const CAP: Duration = Duration::from_secs(60);
    pub(super) const PREFETCH: u16 = 7;
}

const POLICY: RetryPolicy = RetryPolicy::fixed(3, duration("10s"));

/// Where the attribute of the next function stands.
const LINE: u32 = line!() + 2;

#[consumer(queue = "bare")]
async fn bare(_: Raw) {}

#[consumer(
    queue = "all",
    retry = exponential(5, "1s", "1m", jitter = 0.5, give_up_after = "6h", wait_in_broker_from = "40s"),
    idempotent(
        retention = "2d", claim = "10m", in_progress_delay = "1s", key = Order::key, scope = shared, no_id = park, store = "orders"
    ),
    prefetch = 10,
    concurrency = 5,
    timeout = "30s",
    declare = quorum,
    bind = ("orders", "order.placed"),
    bind = ("orders", "order.changed"),
    rungs = classic,
    codec = acemq::envelope::Json,
    name = "everything",
)]
async fn all(_: Order) {}

#[consumer(
    queue = limits::QUEUE,
    retry = exponential(limits::ATTEMPTS, duration("1s"), limits::CAP, jitter = 1, give_up_after = Duration::from_secs(3600)),
    prefetch = limits::PREFETCH,
    timeout = limits::CAP,
)]
async fn named(_: Raw) {}

#[consumer(queue = "by-name", retry = exponential(max = "1m", initial = "1s", attempts = 5))]
async fn by_name(_: Raw) {}

#[consumer(queue = "mixed", retry = fixed(3, delay = "10s"))]
async fn mixed(_: Raw) {}

#[consumer(queue = "constant", retry = POLICY, idempotent(key = Order::key))]
async fn constant(_: Message<Order>) {}

#[consumer(queue = "once", retry = none, idempotent)]
async fn once(_: Raw) {}

#[consumer(queue = "slow", retry_delay = "1m", declare = classic)]
async fn slow(_: Raw) {}

#[derive(serde::Deserialize)]
struct Order {
    number: u64,
}

impl Order {
    fn key(&self) -> u64 {
        self.number
    }
}

#[test]
fn a_queue_is_all_that_a_consumer_has_to_name() {
    let ConsumerSpec { queue, retry, prefetch, concurrency, timeout, declare, bind, rungs, idempotent } =
        bare::REGISTRATION.spec;
    assert_eq!((queue, retry, prefetch, concurrency), ("bare", RetryPolicy::DEFAULT, 20, 20));
    assert_eq!((timeout, declare, bind, rungs), (None, None, &[] as &[Bind], None));
    assert!(idempotent.is_none());
    assert!(bare::REGISTRATION.name.ends_with("settings::bare"), "{}", bare::REGISTRATION.name);
    assert!(bare::REGISTRATION.location.file.ends_with("settings.rs"));
    assert_eq!(bare::REGISTRATION.location.line, LINE + 1, "the line of the function, not of the attribute");
}

#[test]
fn every_option_arrives_where_it_belongs() {
    let spec = all::REGISTRATION.spec;
    assert_eq!(
        spec.retry,
        RetryPolicy::exponential(5, Duration::from_secs(1), Duration::from_secs(60))
            .with_jitter(0.5)
            .give_up_after(Duration::from_secs(21_600))
            .wait_in_broker_from(Duration::from_secs(40))
    );
    assert_eq!((spec.queue, spec.prefetch, spec.concurrency), ("all", 10, 5));
    assert_eq!((spec.timeout, spec.declare), (Some(Duration::from_secs(30)), Some(QueueKind::Quorum)));
    assert_eq!(spec.rungs, Some(RungKind::Classic));
    let keys: Vec<_> = spec.bind.iter().map(|bind| (bind.exchange, bind.routing_key)).collect();
    assert_eq!(keys, [("orders", "order.placed"), ("orders", "order.changed")]);
    let Idempotent { retention, claim, in_progress_delay, scope, no_id, store, key } = spec.idempotent.unwrap();
    assert_eq!(retention, Duration::from_secs(2 * 86_400));
    assert_eq!((claim, in_progress_delay), (Duration::from_secs(600), Duration::from_secs(1)));
    assert_eq!((scope, no_id, store), (Scoped::Shared, NoId::Park, Some("orders")));
    assert!(key.is_some());
    assert_eq!(all::REGISTRATION.name, "everything");
}

#[test]
fn values_may_be_constants_and_settings_may_be_named() {
    let spec = named::REGISTRATION.spec;
    assert_eq!(
        spec.retry,
        RetryPolicy::exponential(4, Duration::from_secs(1), Duration::from_secs(60))
            .with_jitter(1.0)
            .give_up_after(Duration::from_secs(3_600))
    );
    assert_eq!((spec.queue, spec.prefetch, spec.concurrency), ("named", 7, 7));
    assert_eq!(spec.timeout, Some(Duration::from_secs(60)));
    let exponential = RetryPolicy::exponential(5, Duration::from_secs(1), Duration::from_secs(60));
    assert_eq!(by_name::REGISTRATION.spec.retry, exponential);
    assert_eq!(mixed::REGISTRATION.spec.retry, POLICY);
    assert_eq!(constant::REGISTRATION.spec.retry, POLICY);
    assert_eq!(once::REGISTRATION.spec.retry, RetryPolicy::none());
    assert_eq!(once::REGISTRATION.spec.idempotent.unwrap().claim, Idempotent::DEFAULT.claim);
    assert_eq!(slow::REGISTRATION.spec.retry, RetryPolicy::unbounded(Duration::from_secs(60)));
    assert_eq!(slow::REGISTRATION.spec.declare, Some(QueueKind::Classic));
}

#[test]
fn the_key_of_a_claim_is_taken_from_the_message() {
    for spec in [all::REGISTRATION.spec, constant::REGISTRATION.spec] {
        let key = spec.idempotent.unwrap().key.unwrap();
        let of = |body| key(&context(delivered(body, &[]), Scope::default()));
        assert_eq!(of(r#"{"number":7}"#).as_deref(), Ok("7"));
        assert!(of("{").is_err());
    }
}

#[test]
fn every_consumer_of_the_program_is_collected_in_a_stable_order() {
    let queues: Vec<&str> = registry::collected().iter().map(|consumer| consumer.spec.queue).collect();
    let mut sorted = queues.clone();
    sorted.sort_unstable();
    assert_eq!(queues, sorted);
    for queue in ["bare", "all", "named", "sales", "returns", "typed"] {
        assert!(queues.contains(&queue), "{queue} in {queues:?}");
    }
    assert!(!queues.contains(&"never"));
}

#[test]
fn what_compiles_is_valid_when_it_starts() {
    for consumer in registry::collected() {
        assert_eq!(consumer.spec.validate(), [], "{}", consumer.name);
    }
}
