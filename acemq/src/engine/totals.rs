//! What became of deliveries, in numbers that add up.

use super::{
    Outcome,
    account::{End, GaveBack},
};

/// What became of all deliveries since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Everything that came from the queue.
    pub delivered: u64,
    /// Accepted by the handler.
    pub acked: u64,
    /// Failed, and tried again.
    pub retried: u64,
    /// Given up by the policy.
    pub dead_lettered: u64,
    /// Refused by the handler or by a fatal error.
    pub rejected: u64,
    /// Set aside for a person.
    pub parked: u64,
    /// Given back by the handler.
    pub released: u64,
    /// Handled by somebody else at the time.
    pub in_progress: u64,
    /// Handled before.
    pub duplicate: u64,
    /// Given back by acemq.
    pub returned: Returned,
    /// Not settled before their channel was gone.
    pub lost: u64,
}

/// What acemq gave back, and why; the attempt of none of them has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Returned {
    /// At a shutdown, before any handler had seen them.
    pub unstarted: u64,
    /// At a shutdown, from the wait for their next try.
    pub waiting: u64,
    /// At a shutdown, when their handlers ended because they were told to.
    pub stopped: u64,
    /// At a shutdown, when their handlers did not end although they were told to.
    pub abandoned: u64,
    /// When a claim store could not be asked, a claim was lost, or a copy could not be made.
    pub failed: u64,
}

impl Returned {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.unstarted + self.waiting + self.stopped + self.abandoned + self.failed
    }
}

impl Totals {
    /// All deliveries that have been settled.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.acked
            + self.retried
            + self.set_aside()
            + self.released
            + self.in_progress
            + self.duplicate
            + self.returned.total()
            + self.lost
    }

    /// All that are in a dead-letter or parking queue.
    #[must_use]
    pub fn set_aside(&self) -> u64 {
        self.dead_lettered + self.rejected + self.parked
    }

    pub(crate) fn count(&mut self, end: End) {
        let count = match end.outcome {
            Outcome::Acked => &mut self.acked,
            Outcome::Retried => &mut self.retried,
            Outcome::DeadLettered => &mut self.dead_lettered,
            Outcome::Rejected => &mut self.rejected,
            Outcome::Parked => &mut self.parked,
            Outcome::Released => &mut self.released,
            Outcome::InProgress => &mut self.in_progress,
            Outcome::Duplicate => &mut self.duplicate,
            Outcome::Lost => &mut self.lost,
            Outcome::Requeued => match end.gave_back {
                GaveBack::Unstarted => &mut self.returned.unstarted,
                GaveBack::Waiting => &mut self.returned.waiting,
                GaveBack::Stopped => &mut self.returned.stopped,
                GaveBack::Abandoned => &mut self.returned.abandoned,
                GaveBack::Failed => &mut self.returned.failed,
            },
        };
        *count += 1;
    }
}

impl std::ops::Add for Totals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            delivered: self.delivered + other.delivered,
            acked: self.acked + other.acked,
            retried: self.retried + other.retried,
            dead_lettered: self.dead_lettered + other.dead_lettered,
            rejected: self.rejected + other.rejected,
            parked: self.parked + other.parked,
            released: self.released + other.released,
            in_progress: self.in_progress + other.in_progress,
            duplicate: self.duplicate + other.duplicate,
            returned: self.returned + other.returned,
            lost: self.lost + other.lost,
        }
    }
}

impl std::ops::Add for Returned {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            unstarted: self.unstarted + other.unstarted,
            waiting: self.waiting + other.waiting,
            stopped: self.stopped + other.stopped,
            abandoned: self.abandoned + other.abandoned,
            failed: self.failed + other.failed,
        }
    }
}
