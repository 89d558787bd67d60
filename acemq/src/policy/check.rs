//! What a policy must keep to; the same questions are asked when compiling and when starting.

use std::{fmt, time::Duration};

use super::{
    Growth, RetryPolicy,
    duration::{LONGEST_WAIT_MS, millis},
    schedule::Place,
};

/// A broker closes the channel of a consumer that holds one delivery for this long, unless it is set up otherwise.
pub const BROKER_CONSUMER_TIMEOUT: Duration = Duration::from_mins(30);

/// After this many doublings no wait changes any more: it is at its cap or past every limit.
const DOUBLINGS: u32 = 130;

/// What is wrong with a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicyError {
    /// No attempt at all.
    NoAttempts,
    /// A wait of no length.
    NoDelay,
    /// A wait under a millisecond.
    DelayTooShort,
    /// A longest wait under the first one.
    MaxBelowFirst,
    /// A share outside 0 to 1.
    Jitter,
    /// The message is too old before it is tried again.
    AgeBeforeFirstRetry,
    /// A wait in the broker that is no whole second.
    BrokerWaitNotWhole,
    /// A wait that no broker keeps.
    TooLong,
    /// A wait in the consumer that outlasts the patience of the broker.
    HeldTooLong,
}

impl PolicyError {
    /// The sentence for a person: what is wrong and what to write.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::NoAttempts => "`attempts` must be at least 1: the first delivery is an attempt",
            Self::NoDelay => "a retry delay must be longer than zero",
            Self::DelayTooShort => "a retry delay must be at least 1ms",
            Self::MaxBelowFirst => "`max` must not be shorter than `initial`",
            Self::Jitter => "`jitter` must lie between 0.0 and 1.0",
            Self::AgeBeforeFirstRetry => {
                "`give_up_after` ends before the first retry: make it longer than the first delay"
            }
            Self::BrokerWaitNotWhole => {
                "a wait in the broker must be whole seconds: choose a delay in seconds, or keep it in the consumer with a longer `wait_in_broker_from`"
            }
            Self::TooLong => "a retry delay must not be longer than ten years: no broker keeps a message that long",
            Self::HeldTooLong => {
                "a wait of 30 minutes or more must be spent in the broker, which gives up on a consumer that holds a delivery for so long: shorten `wait_in_broker_from`"
            }
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for PolicyError {}

/// Whether a number of attempts makes sense.
pub(crate) const fn attempts(attempts: u32) -> Result<(), PolicyError> {
    if attempts == 0 { Err(PolicyError::NoAttempts) } else { Ok(()) }
}

/// Whether a delay makes sense by itself.
pub(crate) const fn delay(delay: Duration) -> Result<(), PolicyError> {
    if delay.is_zero() {
        Err(PolicyError::NoDelay)
    } else if millis(delay) == 0 {
        Err(PolicyError::DelayTooShort)
    } else if millis(delay) > LONGEST_WAIT_MS {
        Err(PolicyError::TooLong)
    } else {
        Ok(())
    }
}

/// Whether a share makes sense; no number is not one.
pub(crate) const fn jitter(share: f64) -> Result<(), PolicyError> {
    if share >= 0.0 && share <= 1.0 { Ok(()) } else { Err(PolicyError::Jitter) }
}

impl RetryPolicy {
    /// Checks what the attribute checks when it compiles, for a policy that is built by hand.
    ///
    /// # Errors
    /// With the first thing that is wrong.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use acemq::policy::{PolicyError, RetryPolicy};
    ///
    /// let policy = RetryPolicy::fixed(0, Duration::from_secs(5));
    /// assert_eq!(policy.validate(), Err(PolicyError::NoAttempts));
    /// ```
    pub const fn validate(&self) -> Result<(), PolicyError> {
        if let Some(count) = self.attempts
            && let Err(error) = attempts(count)
        {
            return Err(error);
        }
        if let Err(error) = jitter(self.jitter) {
            return Err(error);
        }
        if !self.retries() {
            return Ok(());
        }
        if let Err(error) = delay(self.first) {
            return Err(error);
        }
        if let Growth::Doubling { max: Some(max) } = self.growth
            && !max.is_zero()
            && max.as_nanos() < self.first.as_nanos()
        {
            return Err(PolicyError::MaxBelowFirst);
        }
        if self.ends_before_first_retry() {
            return Err(PolicyError::AgeBeforeFirstRetry);
        }
        if let Err(error) = self.broker_waits() {
            return Err(error);
        }
        if millis(self.longest_held_wait()) >= millis(BROKER_CONSUMER_TIMEOUT) {
            return Err(PolicyError::HeldTooLong);
        }
        Ok(())
    }

    /// Whether a failed message is ever tried again.
    const fn retries(&self) -> bool {
        match self.attempts {
            Some(attempts) => attempts > 1,
            None => true,
        }
    }

    /// How many waits there are; past [`DOUBLINGS`] all are alike.
    const fn waits(&self) -> u32 {
        match self.attempts {
            Some(attempts) => attempts.saturating_sub(1),
            None => u32::MAX,
        }
    }

    pub(crate) const fn ends_before_first_retry(&self) -> bool {
        self.retries() && !self.give_up_after.is_zero() && self.give_up_after.as_nanos() <= self.first.as_nanos()
    }

    /// Whether the broker can keep every wait that is spent there.
    pub(crate) const fn broker_waits(&self) -> Result<(), PolicyError> {
        let waits = self.distinct_waits();
        let mut attempt = 1;
        while attempt <= waits {
            let wait = self.delay(attempt);
            if matches!(self.place(wait), Place::Broker) {
                if millis(wait) > LONGEST_WAIT_MS {
                    return Err(PolicyError::TooLong);
                }
                if wait.subsec_nanos() != 0 {
                    return Err(PolicyError::BrokerWaitNotWhole);
                }
            }
            attempt += 1;
        }
        Ok(())
    }

    /// The longest wait in the consumer, jitter included; zero when there is none.
    #[must_use]
    pub const fn longest_held_wait(&self) -> Duration {
        let waits = self.distinct_waits();
        let mut longest = Duration::ZERO;
        let mut attempt = 1;
        while attempt <= waits {
            let wait = self.delay(attempt);
            if matches!(self.place(wait), Place::Consumer) {
                longest = wait;
            }
            attempt += 1;
        }
        self.with_most_jitter(longest)
    }

    const fn with_most_jitter(&self, wait: Duration) -> Duration {
        if jitter(self.jitter).is_err() {
            return wait;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // from 0 to 1, looked at just above
        let permille = (self.jitter * 1_000.0) as u64;
        let extra = millis(wait) / 1_000;
        wait.saturating_add(Duration::from_millis(extra.saturating_mul(permille)))
    }

    /// How long all waits together take, without jitter, or the age limit if that ends first; `None` is without end.
    #[must_use]
    pub const fn longest_life(&self) -> Option<Duration> {
        let limit = if self.give_up_after.is_zero() { None } else { Some(self.give_up_after) };
        let Some(_) = self.attempts else {
            return limit;
        };
        let waits = self.waits();
        let looped = self.distinct_waits();
        let mut total = Duration::ZERO;
        let mut attempt = 1;
        while attempt <= looped {
            total = total.saturating_add(self.delay(attempt));
            attempt += 1;
        }
        let last = self.delay(waits);
        total = total.saturating_add(last.saturating_mul(waits - looped));
        match limit {
            Some(limit) if limit.as_nanos() < total.as_nanos() => Some(limit),
            _ => Some(total),
        }
    }

    /// The longest name of a rung, after `{queue}.retry.`, in bytes; zero without rungs.
    pub(crate) const fn longest_rung_name(&self) -> usize {
        let waits = self.distinct_waits();
        let mut longest = 0;
        let mut attempt = 1;
        while attempt <= waits {
            let wait = self.delay(attempt);
            if matches!(self.place(wait), Place::Broker) {
                let length = rendered_length(wait);
                if length > longest {
                    longest = length;
                }
            }
            attempt += 1;
        }
        longest
    }

    /// The number of waits to look at until all further ones are alike.
    const fn distinct_waits(&self) -> u32 {
        let most = match self.growth {
            Growth::Fixed => 1,
            Growth::Doubling { .. } => DOUBLINGS,
        };
        let waits = self.waits();
        if waits < most { waits } else { most }
    }
}

/// The length of what [`super::render`] writes.
const fn rendered_length(duration: Duration) -> usize {
    let milliseconds = millis(duration);
    let (mut number, unit) = if milliseconds == 0 {
        (0, 2)
    } else if milliseconds.is_multiple_of(3_600_000) {
        (milliseconds / 3_600_000, 1)
    } else if milliseconds.is_multiple_of(60_000) {
        (milliseconds / 60_000, 1)
    } else if milliseconds.is_multiple_of(1_000) {
        (milliseconds / 1_000, 1)
    } else {
        (milliseconds, 2)
    };
    let mut digits = 1;
    while number >= 10 {
        number /= 10;
        digits += 1;
    }
    digits + unit
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
