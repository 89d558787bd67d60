use super::*;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn seconds(policy: &RetryPolicy) -> Vec<u64> {
    policy.schedule().map(|step| step.delay.as_secs()).collect()
}

fn rungs(policy: &RetryPolicy) -> Vec<u64> {
    policy.broker_rungs().map(|delay| delay.as_secs()).collect()
}

#[test]
fn schedules_are_those_of_the_contract() {
    for (policy, delays, broker) in [
        (RetryPolicy::none(), vec![], vec![]),
        (RetryPolicy::fixed(4, s(30)), vec![30, 30, 30], vec![30]),
        (RetryPolicy::fixed(3, s(5)), vec![5, 5], vec![]),
        (RetryPolicy::exponential(5, s(1), s(86_400)), vec![1, 2, 4, 8], vec![]),
        (RetryPolicy::exponential(6, s(10), s(60)), vec![10, 20, 40, 60, 60], vec![40, 60]),
        (RetryPolicy::exponential_uncapped(7, s(10)), vec![10, 20, 40, 80, 160, 320], vec![40, 80, 160, 320]),
        (RetryPolicy::exponential(4, s(10), s(0)), vec![10, 20, 40], vec![40]),
        (RetryPolicy::exponential(6, s(10), s(60)).wait_in_broker_from(s(0)), vec![10, 20, 40, 60, 60], vec![]),
        (RetryPolicy::exponential(4, s(10), s(60)).wait_in_broker_from(s(10)), vec![10, 20, 40], vec![10, 20, 40]),
    ] {
        assert_eq!(seconds(&policy), delays, "{policy:?}");
        assert_eq!(rungs(&policy), broker, "{policy:?}");
    }
}

#[test]
#[allow(clippy::float_cmp)] // constants, not results
fn only_exponential_policies_have_jitter_of_their_own() {
    assert_eq!(RetryPolicy::none().jitter(), 0.0);
    assert_eq!(RetryPolicy::fixed(3, s(1)).jitter(), 0.0);
    assert_eq!(RetryPolicy::unbounded(s(5)).jitter(), 0.0);
    assert_eq!(RetryPolicy::exponential(3, s(1), s(2)).jitter(), 0.2);
    assert_eq!(RetryPolicy::exponential(3, s(1), s(2)).with_jitter(0.0).jitter(), 0.0);
}

#[test]
fn a_message_is_given_up_by_attempts_before_age_and_an_equal_age_is_too_old() {
    let policy = RetryPolicy::fixed(3, s(1)).give_up_after(s(60));
    let wait = Decision::Wait { delay: s(1), place: Place::Consumer };
    for (attempt, age, expected) in [
        (1, None, wait),
        (1, Some(s(59)), wait),
        (1, Some(s(60)), Decision::GiveUp(GiveUp::TooOld)),
        (2, Some(s(61)), Decision::GiveUp(GiveUp::TooOld)),
        (3, None, Decision::GiveUp(GiveUp::AttemptsExhausted)),
        (3, Some(s(61)), Decision::GiveUp(GiveUp::AttemptsExhausted)),
        (u32::MAX, None, Decision::GiveUp(GiveUp::AttemptsExhausted)),
    ] {
        assert_eq!(policy.decide(attempt, age), expected, "attempt {attempt}, age {age:?}");
    }
}

#[test]
fn an_age_limit_of_zero_is_no_limit() {
    let policy = RetryPolicy::fixed(3, s(1)).give_up_after(s(0));
    assert!(matches!(policy.decide(1, Some(Duration::MAX)), Decision::Wait { .. }));
}

#[test]
fn a_policy_without_end_never_gives_up() {
    let policy = RetryPolicy::unbounded(RETRY_DELAY);
    for attempt in [1, 2, 1_000_000, u32::MAX] {
        assert_eq!(policy.decide(attempt, Some(s(1))), Decision::Wait { delay: s(5), place: Place::Consumer });
    }
    assert_eq!(rungs(&policy), [] as [u64; 0]);
    assert_eq!(rungs(&RetryPolicy::unbounded(s(60))), [60]);
}

#[test]
fn doubling_saturates_instead_of_overflowing() {
    let policy = RetryPolicy::exponential_uncapped(u32::MAX, s(3_600));
    assert_eq!(policy.delay(200), Duration::MAX);
    assert_eq!(policy.delay(u32::MAX), Duration::MAX);
    let capped = RetryPolicy::exponential(u32::MAX, s(3_600), s(7_200));
    assert_eq!(capped.delay(u32::MAX), s(7_200));
    assert_eq!(rungs(&capped), [3_600, 7_200]);
}
