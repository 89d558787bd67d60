//! How a delivery is going to end.

use std::time::Duration;

use super::{Move, Outcome, Target};
use crate::engine::reason::Reason;

/// A copy on its way, and what the delivery becomes once it has arrived.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moving {
    pub(super) copy: Move,
    pub(super) outcome: Outcome,
    /// How often it was sent in vain.
    pub(super) failed: u32,
    /// How often it could not even be sent.
    pub(super) refused: u32,
}

/// How a delivery is going to end, once what stands before that is done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ending {
    /// A copy, after a wait in the consumer that may be zero.
    Move { wait: Duration, jitter: f64, moving: Moving },
    /// Back to its queue, after a pause.
    Requeue { pause: Duration, outcome: Outcome },
}

/// An ending for those who tell of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plan<'a> {
    pub(crate) outcome: Outcome,
    /// How long the message waits before.
    pub(crate) wait: Duration,
    /// Why it is set aside, if it is.
    pub(crate) reason: Option<&'a Reason>,
}

impl Ending {
    pub(super) fn later(wait: Duration, jitter: f64, copy: Move, outcome: Outcome) -> Self {
        Self::Move { wait, jitter, moving: Moving { copy, outcome, failed: 0, refused: 0 } }
    }

    pub(super) fn plan(&self) -> Plan<'_> {
        match self {
            Self::Move { wait, moving, .. } => moving.plan(*wait),
            Self::Requeue { pause, outcome } => Plan { wait: *pause, ..Plan::of(*outcome) },
        }
    }
}

impl Moving {
    pub(super) fn plan(&self, wait: Duration) -> Plan<'_> {
        let Move { target, reason, .. } = &self.copy;
        let wait = if let Target::Rung(delay) = target { *delay } else { wait };
        Plan { outcome: self.outcome, wait, reason: reason.as_ref() }
    }
}

impl Plan<'_> {
    pub(super) fn of(outcome: Outcome) -> Self {
        Self { outcome, wait: Duration::ZERO, reason: None }
    }
}
