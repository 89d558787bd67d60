use super::*;
use crate::policy::render;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn each_mistake_in_a_policy_has_its_own_name() {
    let half = Duration::from_millis(500);
    for (policy, expected) in [
        (RetryPolicy::none(), Ok(())),
        (RetryPolicy::unbounded(s(5)), Ok(())),
        (RetryPolicy::fixed(3, s(30)), Ok(())),
        (RetryPolicy::fixed(3, half), Ok(())),
        (RetryPolicy::exponential(5, s(1), s(86_400)), Ok(())),
        (RetryPolicy::exponential(4, s(10), s(0)), Ok(())),
        (RetryPolicy::exponential(u32::MAX, s(1), s(60)), Ok(())),
        (RetryPolicy::fixed(1, s(0)), Ok(())),
        (RetryPolicy::fixed(0, s(5)), Err(PolicyError::NoAttempts)),
        (RetryPolicy::fixed(2, s(0)), Err(PolicyError::NoDelay)),
        (RetryPolicy::unbounded(s(0)), Err(PolicyError::NoDelay)),
        (RetryPolicy::fixed(2, Duration::from_nanos(1)), Err(PolicyError::DelayTooShort)),
        (RetryPolicy::exponential(3, s(60), s(1)), Err(PolicyError::MaxBelowFirst)),
        (RetryPolicy::fixed(3, s(1)).with_jitter(1.1), Err(PolicyError::Jitter)),
        (RetryPolicy::fixed(3, s(1)).with_jitter(-0.1), Err(PolicyError::Jitter)),
        (RetryPolicy::fixed(3, s(1)).with_jitter(f64::NAN), Err(PolicyError::Jitter)),
        (RetryPolicy::fixed(3, s(10)).give_up_after(s(10)), Err(PolicyError::AgeBeforeFirstRetry)),
        (RetryPolicy::fixed(3, s(10)).give_up_after(s(11)), Ok(())),
        (RetryPolicy::fixed(3, Duration::from_millis(45_500)), Err(PolicyError::BrokerWaitNotWhole)),
        (RetryPolicy::exponential(9, half, s(3_600)).wait_in_broker_from(half), Err(PolicyError::BrokerWaitNotWhole)),
        (RetryPolicy::fixed(3, Duration::from_millis(45_500)).wait_in_broker_from(s(60)), Ok(())),
        (RetryPolicy::fixed(2, s(315_360_000)), Ok(())),
        (RetryPolicy::fixed(2, s(315_360_001)), Err(PolicyError::TooLong)),
        (RetryPolicy::exponential_uncapped(200, s(3_600)), Err(PolicyError::TooLong)),
        (RetryPolicy::fixed(2, s(1_800)).wait_in_broker_from(s(0)), Err(PolicyError::HeldTooLong)),
        (RetryPolicy::fixed(2, s(1_799)).wait_in_broker_from(s(0)), Ok(())),
        (RetryPolicy::fixed(2, s(1_700)).with_jitter(0.2).wait_in_broker_from(s(0)), Err(PolicyError::HeldTooLong)),
    ] {
        assert_eq!(policy.validate(), expected, "{policy:?}");
    }
}

#[test]
fn the_whole_life_of_a_message_ends_with_its_attempts_or_its_age() {
    for (policy, expected) in [
        (RetryPolicy::none(), Some(s(0))),
        (RetryPolicy::fixed(4, s(30)), Some(s(90))),
        (RetryPolicy::exponential(6, s(10), s(60)), Some(s(190))),
        (RetryPolicy::exponential(1_000, s(1), s(1)), Some(s(999))),
        (RetryPolicy::fixed(4, s(30)).give_up_after(s(60)), Some(s(60))),
        (RetryPolicy::unbounded(s(5)), None),
        (RetryPolicy::unbounded(s(5)).give_up_after(s(60)), Some(s(60))),
        (RetryPolicy::exponential_uncapped(u32::MAX, s(1)), Some(Duration::MAX)),
    ] {
        assert_eq!(policy.longest_life(), expected, "{policy:?}");
    }
}

#[test]
fn the_length_of_a_rung_is_that_of_its_name() {
    for milliseconds in [0, 500, 1_000, 45_500, 90_000, 160_000, 3_600_000, 315_360_000_000] {
        let delay = Duration::from_millis(milliseconds);
        assert_eq!(rendered_length(delay), render(delay).len(), "{delay:?}");
    }
    let policy = RetryPolicy::exponential(9, s(10), s(160));
    assert_eq!(policy.longest_rung_name(), "160s".len());
    assert_eq!(RetryPolicy::none().longest_rung_name(), 0);
}

#[test]
fn two_rungs_of_a_valid_policy_never_share_a_name() {
    // A name is a whole number of milliseconds in its largest unit, and a valid rung is whole seconds: equal names are
    // equal delays, and equal delays are one rung.
    let policy = RetryPolicy::exponential(40, s(1), s(315_360_000)).wait_in_broker_from(s(1));
    assert_eq!(policy.validate(), Ok(()));
    let names: Vec<String> = policy.broker_rungs().map(render).collect();
    let mut distinct = names.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(names.len(), distinct.len());
}
