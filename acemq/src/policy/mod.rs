//! How often a message is tried, how long it waits in between, and where.
//!
//! Everything here is `const`: the macro evaluates at compile time the very functions that the engine runs.

mod check;
mod duration;
mod jitter;
mod schedule;

use std::time::Duration;

pub use check::{BROKER_CONSUMER_TIMEOUT, PolicyError};
pub(crate) use check::{attempts as check_attempts, delay as check_delay, jitter as check_jitter};
pub use duration::{DurationError, LONGEST_WAIT_MS, duration, millis, render, try_duration};
pub use jitter::Jitter;
pub use schedule::{Place, Schedule, Step};

/// A wait of this length or longer is spent in the broker, unless the policy says otherwise.
pub const WAIT_IN_BROKER_FROM: Duration = Duration::from_secs(30);

/// The distance between tries of a consumer without a policy.
pub const RETRY_DELAY: Duration = Duration::from_secs(5);

/// How often a message is tried, how long it waits in between, and where.
///
/// # Examples
/// ```
/// use acemq::policy::{RetryPolicy, duration};
///
/// const POLICY: RetryPolicy = RetryPolicy::exponential(6, duration("10s"), duration("1m"));
/// let delays: Vec<u64> = POLICY.schedule().map(|step| step.delay.as_secs()).collect();
/// assert_eq!(delays, [10, 20, 40, 60, 60]);
/// let rungs: Vec<u64> = POLICY.broker_rungs().map(|delay| delay.as_secs()).collect();
/// assert_eq!(rungs, [40, 60]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Deliveries in all; `None` is without end.
    attempts: Option<u32>,
    first: Duration,
    growth: Growth,
    jitter: f64,
    /// Zero is no limit.
    give_up_after: Duration,
    /// Zero keeps every wait in the consumer.
    wait_in_broker_from: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Growth {
    Fixed,
    Doubling { max: Option<Duration> },
}

impl RetryPolicy {
    /// What a consumer without a policy does: it tries for ever, [`RETRY_DELAY`] apart.
    pub const DEFAULT: Self = Self::unbounded(RETRY_DELAY);

    /// One delivery, no retry.
    #[must_use]
    pub const fn none() -> Self {
        Self::with(Some(1), Duration::ZERO, Growth::Fixed, 0.0)
    }

    /// `attempts` deliveries, `delay` apart, without jitter.
    #[must_use]
    pub const fn fixed(attempts: u32, delay: Duration) -> Self {
        Self::with(Some(attempts), delay, Growth::Fixed, 0.0)
    }

    /// `attempts` deliveries; the first wait is `first`, each further one twice as long, none longer than `max`. Waits in
    /// the consumer vary by a fifth, so that messages that failed together do not come back together.
    #[must_use]
    pub const fn exponential(attempts: u32, first: Duration, max: Duration) -> Self {
        Self::with(Some(attempts), first, Growth::Doubling { max: Some(max) }, 0.2)
    }

    /// Like [`RetryPolicy::exponential`], without a longest wait.
    #[must_use]
    pub const fn exponential_uncapped(attempts: u32, first: Duration) -> Self {
        Self::with(Some(attempts), first, Growth::Doubling { max: None }, 0.2)
    }

    /// Deliveries without end, `delay` apart: what a consumer without a policy does.
    #[must_use]
    pub const fn unbounded(delay: Duration) -> Self {
        Self::with(None, delay, Growth::Fixed, 0.0)
    }

    const fn with(attempts: Option<u32>, first: Duration, growth: Growth, jitter: f64) -> Self {
        Self {
            attempts,
            first,
            growth,
            jitter,
            give_up_after: Duration::ZERO,
            wait_in_broker_from: WAIT_IN_BROKER_FROM,
        }
    }

    /// Gives up a message that is `age` old or older when it fails, counted from its first publish. Zero is no limit.
    #[must_use]
    pub const fn give_up_after(mut self, age: Duration) -> Self {
        self.give_up_after = age;
        self
    }

    /// Varies waits in the consumer by this share, in both directions; from 0 to 1.
    #[must_use]
    pub const fn with_jitter(mut self, share: f64) -> Self {
        self.jitter = share;
        self
    }

    /// Spends waits of this length or longer in the broker, where they survive the consumer. Zero keeps all in the consumer.
    #[must_use]
    pub const fn wait_in_broker_from(mut self, threshold: Duration) -> Self {
        self.wait_in_broker_from = threshold;
        self
    }

    /// The number of deliveries in all; `None` is without end.
    #[must_use]
    pub const fn attempts(&self) -> Option<u32> {
        self.attempts
    }

    /// The share by which waits in the consumer vary.
    #[must_use]
    pub const fn jitter(&self) -> f64 {
        self.jitter
    }

    /// The longest wait of a policy whose waits grow.
    pub(crate) const fn cap(&self) -> Option<Duration> {
        match self.growth {
            Growth::Doubling { max } => max,
            Growth::Fixed => None,
        }
    }

    /// The age at which a message that fails is given up; zero is no limit.
    #[must_use]
    pub const fn age_limit(&self) -> Duration {
        self.give_up_after
    }

    /// The wait after the failure of delivery number `attempt`, counted from 1, without jitter.
    #[must_use]
    pub const fn delay(&self, attempt: u32) -> Duration {
        match self.growth {
            Growth::Fixed => self.first,
            Growth::Doubling { max } => {
                let doublings = attempt.saturating_sub(1);
                let grown = if doublings >= u32::BITS {
                    if self.first.is_zero() { Duration::ZERO } else { Duration::MAX }
                } else {
                    self.first.saturating_mul(1 << doublings)
                };
                match max {
                    // A longest wait of zero would be no wait at all: it means no longest wait.
                    Some(max) if !max.is_zero() && millis(max) < millis(grown) => max,
                    _ => grown,
                }
            }
        }
    }

    /// Where a wait of this length, taken without jitter, is spent.
    #[must_use]
    pub const fn place(&self, delay: Duration) -> Place {
        let threshold = millis(self.wait_in_broker_from);
        if threshold > 0 && millis(delay) >= threshold { Place::Broker } else { Place::Consumer }
    }

    /// What follows when delivery number `attempt` of a message of this age failed; an unknown age is young.
    #[must_use]
    pub const fn decide(&self, attempt: u32, age: Option<Duration>) -> Decision {
        if let Some(attempts) = self.attempts
            && attempt >= attempts
        {
            return Decision::GiveUp(GiveUp::AttemptsExhausted);
        }
        if let Some(age) = age
            && !self.give_up_after.is_zero()
            && age.as_nanos() >= self.give_up_after.as_nanos()
        {
            return Decision::GiveUp(GiveUp::TooOld);
        }
        let delay = self.delay(attempt);
        Decision::Wait { delay, place: self.place(delay) }
    }
}

/// What follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The message waits and is delivered again.
    Wait {
        /// How long, without jitter.
        delay: Duration,
        /// Where.
        place: Place,
    },
    /// The message is dead-lettered.
    GiveUp(GiveUp),
}

/// Why a policy gives a message up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GiveUp {
    /// It was delivered as often as the policy allows.
    AttemptsExhausted,
    /// It failed at or past the age limit.
    TooOld,
}

#[cfg(test)]
mod tests;
