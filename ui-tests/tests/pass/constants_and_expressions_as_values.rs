use std::time::Duration;

use acemq::{Raw, RetryPolicy, consumer, policy::duration, registry::Consumer};

const ATTEMPTS: u32 = 3;
const DELAY: Duration = duration("10s");
const JITTER: f64 = 0.25;
const QUEUE: &str = "orders";
const PREFETCH: u16 = 8;
const POLICY: RetryPolicy = RetryPolicy::fixed(ATTEMPTS, DELAY).with_jitter(JITTER);

const fn policy(attempts: u32) -> RetryPolicy {
    RetryPolicy::fixed(attempts, DELAY).with_jitter(JITTER)
}

struct Limits<const N: u16>;

impl<const N: u16> Limits<N> {
    const HALF: u16 = N / 2;
}

#[consumer(
    queue = QUEUE,
    retry = fixed(ATTEMPTS, DELAY, jitter = JITTER),
    prefetch = PREFETCH,
    concurrency = PREFETCH / 2,
    timeout = Duration::from_secs(3 * 10),
)]
async fn settings(_: Raw) {}

#[consumer(queue = concat!("orders", ".eu"), retry = POLICY, prefetch = if PREFETCH < 4 { 4 } else { PREFETCH })]
async fn constant(_: Raw) {}

#[consumer(queue = "orders.us", retry = policy(3), prefetch = Limits::<16>::HALF)]
async fn function(_: Raw) {}

#[test]
fn compiles_and_registers() {
    for registration in [settings::REGISTRATION, constant::REGISTRATION, function::REGISTRATION] {
        assert_eq!(registration.spec.retry, POLICY);
        assert_eq!(registration.spec.prefetch, 8);
        assert_eq!(registration.spec.validate(), []);
    }
    assert_eq!(settings::REGISTRATION.spec.concurrency, 4);
}
