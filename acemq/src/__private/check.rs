//! The checks as an expansion calls them: in a constant, with the blame on the line that calls.
//!
//! A value that another check has blamed already arrives as `None`, and is left alone: one mistake, one message.

#![allow(clippy::panic, clippy::missing_panics_doc)] // a panic in a constant is a compile error

use std::time::Duration;

use crate::{
    policy::{BROKER_CONSUMER_TIMEOUT, PolicyError, RetryPolicy, check_attempts, check_delay, check_jitter, millis},
    registry::{Bind, SpecError, check},
};

macro_rules! blame {
    ($check:expr) => {
        if let Err(error) = $check {
            panic!("{}", error.message());
        }
    };
}

#[track_caller]
pub const fn queue(name: &str) {
    blame!(check::queue(name));
}

#[track_caller]
pub const fn derived(name: &str, retry: &RetryPolicy) {
    if check::queue(name).is_ok() && retry.validate().is_ok() {
        blame!(check::derived(name, retry));
    }
}

#[track_caller]
pub const fn name(name: &str) {
    blame!(check::name(name));
}

#[track_caller]
pub const fn prefetch(prefetch: u16) {
    blame!(check::prefetch(prefetch));
}

#[track_caller]
pub const fn concurrency(concurrency: u16, prefetch: u16) {
    blame!(check::concurrency(concurrency, prefetch));
}

#[track_caller]
pub const fn timeout(timeout: Duration, retry: &RetryPolicy) {
    blame!(check::timeout(timeout, retry));
}

#[track_caller]
pub const fn bind(bind: &Bind) {
    blame!(check::bind(bind));
}

/// A policy that is a constant of the user's.
#[track_caller]
pub const fn policy(retry: &RetryPolicy) {
    blame!(retry.validate());
}

#[track_caller]
pub const fn attempts(attempts: u32) {
    blame!(check_attempts(attempts));
}

/// The first delay, or the only one. What the broker cannot keep is blamed on it too, unless the cap is to blame.
#[track_caller]
pub const fn delay(delay: Duration, retry: &RetryPolicy) {
    blame!(check_delay(delay));
    if retry.cap().is_none() {
        blame!(retry.broker_waits());
    }
}

/// The longest delay.
#[track_caller]
pub const fn cap(max: Duration, first: Option<Duration>, retry: &RetryPolicy) {
    if let Some(first) = first
        && check_delay(first).is_ok()
    {
        assert!(max.as_nanos() >= first.as_nanos(), "{}", PolicyError::MaxBelowFirst.message());
        blame!(retry.broker_waits());
    }
}

#[track_caller]
pub const fn jitter(share: f64) {
    blame!(check_jitter(share));
}

#[track_caller]
pub const fn give_up_after(age: Duration, retry: &RetryPolicy) {
    assert!(!age.is_zero(), "`give_up_after` must be longer than zero; leave it out for no limit");
    assert!(!retry.ends_before_first_retry(), "{}", PolicyError::AgeBeforeFirstRetry.message());
}

#[track_caller]
pub const fn wait_in_broker_from(_: Duration, retry: &RetryPolicy) {
    assert!(
        millis(retry.longest_held_wait()) < millis(BROKER_CONSUMER_TIMEOUT),
        "{}",
        PolicyError::HeldTooLong.message()
    );
}

#[track_caller]
pub const fn message_type(kind: &str) {
    assert!(!kind.is_empty(), "a message type is not empty: name it, as in `type = \"order.placed\"`");
}

#[track_caller]
pub const fn message_version(version: u32) {
    assert!(version >= 1, "`version` must be at least 1, which is the first version of a message");
}

/// The wait that a classified error asks for.
#[track_caller]
pub const fn after(delay: Duration) {
    blame!(check_delay(delay));
}

#[track_caller]
pub const fn claim(claim: Duration) {
    blame!(check::claim(claim));
}

#[track_caller]
pub const fn in_progress_delay(delay: Duration, claim: Option<Duration>) {
    let claim = match claim {
        Some(claim) => claim,
        None => Duration::MAX,
    };
    blame!(check::in_progress_delay(delay, claim));
}

/// The retention, or the word `idempotent` when it names none.
#[track_caller]
pub const fn retention(retention: Duration, retry: &RetryPolicy) {
    if retry.validate().is_ok() {
        blame!(check::retention(retention, retry));
    } else {
        assert!(!retention.is_zero(), "{}", SpecError::NoRetention.message());
    }
}

#[track_caller]
pub const fn store(store: &str) {
    blame!(check::store(store));
}
