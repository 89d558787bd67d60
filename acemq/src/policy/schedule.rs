//! The waits of a policy, one after the other.

use std::time::Duration;

use super::RetryPolicy;

/// Where a wait is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the consumer, which holds the delivery.
    Consumer,
    /// In a queue of the broker, a rung.
    Broker,
}

/// One wait of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The delivery that failed, counted from 1.
    pub attempt: u32,
    /// The wait after it, without jitter.
    pub delay: Duration,
    /// Where it is spent.
    pub place: Place,
}

/// The waits of a policy in their order; without end for a policy without end.
#[derive(Debug, Clone)]
pub struct Schedule {
    policy: RetryPolicy,
    attempt: u32,
}

impl Iterator for Schedule {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let attempt = self.attempt;
        if self.policy.attempts().is_some_and(|attempts| attempt >= attempts) {
            return None;
        }
        self.attempt = attempt.saturating_add(1);
        let delay = self.policy.delay(attempt);
        Some(Step { attempt, delay, place: self.policy.place(delay) })
    }
}

impl RetryPolicy {
    /// The waits of this policy in their order, one fewer than there are attempts, without jitter.
    #[must_use]
    pub const fn schedule(&self) -> Schedule {
        Schedule { policy: *self, attempt: 1 }
    }

    /// The distinct waits that are spent in the broker, shortest first.
    pub fn broker_rungs(&self) -> impl Iterator<Item = Duration> + use<> {
        let mut last = None;
        // The waits never shrink, and from the 130th on no doubling changes anything.
        self.schedule()
            .take(130)
            .filter(|step| step.place == Place::Broker)
            .map(|step| step.delay)
            .filter(move |delay| last.replace(*delay) != Some(*delay))
    }
}
