use super::*;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const SPEC: ConsumerSpec = ConsumerSpec::new("orders");

fn with(idempotent: Idempotent) -> ConsumerSpec {
    ConsumerSpec { idempotent: Some(idempotent), ..SPEC }
}

#[test]
fn each_mistake_in_the_settings_has_its_own_name() {
    const DEFAULT: Idempotent = Idempotent::DEFAULT;
    let long: &'static str = "q".repeat(256).leak();
    for (spec, expected) in [
        (SPEC, None),
        (with(DEFAULT), None),
        (ConsumerSpec::new(""), Some(SpecError::QueueEmpty)),
        (ConsumerSpec::new("amq.x"), Some(SpecError::QueueReserved)),
        (ConsumerSpec::new("x.dlq"), Some(SpecError::QueueDerived)),
        (ConsumerSpec::new("x.parked"), Some(SpecError::QueueDerived)),
        (ConsumerSpec::new("x.retry.160s"), Some(SpecError::QueueDerived)),
        (ConsumerSpec::new("x.retry.later"), None),
        (ConsumerSpec::new("amqp"), None),
        (ConsumerSpec::new(".retry."), None),
        (ConsumerSpec::new(long), Some(SpecError::QueueTooLong)),
        (ConsumerSpec { prefetch: 0, ..SPEC }, Some(SpecError::NoPrefetch)),
        (ConsumerSpec { concurrency: 0, ..SPEC }, Some(SpecError::NoConcurrency)),
        (ConsumerSpec { concurrency: 21, ..SPEC }, Some(SpecError::ConcurrencyAbovePrefetch)),
        (ConsumerSpec { timeout: Some(s(0)), ..SPEC }, Some(SpecError::NoTimeout)),
        (ConsumerSpec { timeout: Some(s(1_800)), ..SPEC }, Some(SpecError::TimeoutTooLong)),
        (
            // 5 s of `retry_delay` follow.
            ConsumerSpec { timeout: Some(s(1_795)), ..SPEC },
            Some(SpecError::HeldTooLong),
        ),
        (ConsumerSpec { timeout: Some(s(1_794)), ..SPEC }, None),
        (
            ConsumerSpec { bind: &[Bind { exchange: "", routing_key: "k" }], ..SPEC },
            Some(SpecError::BindDefaultExchange),
        ),
        (with(Idempotent { claim: s(0), ..DEFAULT }), Some(SpecError::NoClaim)),
        (with(Idempotent { retention: s(0), ..DEFAULT }), Some(SpecError::NoRetention)),
        (with(Idempotent { in_progress_delay: s(0), ..DEFAULT }), Some(SpecError::NoInProgressDelay)),
        (with(Idempotent { in_progress_delay: s(300), ..DEFAULT }), Some(SpecError::InProgressNotBelowClaim)),
        (
            with(Idempotent { in_progress_delay: s(1_800), claim: s(3_600), ..DEFAULT }),
            Some(SpecError::InProgressTooLong),
        ),
        (with(Idempotent { store: Some(""), ..DEFAULT }), Some(SpecError::StoreEmpty)),
        (
            ConsumerSpec { retry: RetryPolicy::fixed(3, s(86_400)), ..with(DEFAULT) },
            Some(SpecError::RetentionBelowSchedule),
        ),
        (ConsumerSpec { retry: RetryPolicy::fixed(2, s(86_400)), ..with(DEFAULT) }, None),
        (
            // Claims are renewed while a handler runs: it may outlast its claim.
            ConsumerSpec { timeout: Some(s(900)), ..with(DEFAULT) },
            None,
        ),
        (ConsumerSpec { retry: RetryPolicy::fixed(0, s(1)), ..SPEC }, Some(SpecError::Policy(PolicyError::NoAttempts))),
    ] {
        assert_eq!(spec.validate(), Vec::from_iter(expected), "{spec:?}");
    }
}

#[test]
fn a_name_must_leave_room_for_the_longest_derived_one() {
    for (length, retry, expected) in [
        (248, RetryPolicy::none(), vec![]),
        (249, RetryPolicy::none(), vec![SpecError::DerivedTooLong]),
        (244, RetryPolicy::exponential(6, s(10), s(160)), vec![]),
        (245, RetryPolicy::exponential(6, s(10), s(160)), vec![SpecError::DerivedTooLong]),
    ] {
        let spec = ConsumerSpec { retry, ..ConsumerSpec::new("q".repeat(length).leak()) };
        assert_eq!(spec.validate(), expected, "{length} bytes, {retry:?}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let spec = ConsumerSpec {
        retry: RetryPolicy::fixed(0, s(1)),
        concurrency: 0,
        timeout: Some(s(0)),
        ..ConsumerSpec::new("amq.gen")
    };
    assert_eq!(
        spec.validate(),
        [
            SpecError::QueueReserved,
            SpecError::Policy(PolicyError::NoAttempts),
            SpecError::NoConcurrency,
            SpecError::NoTimeout
        ]
    );
}
