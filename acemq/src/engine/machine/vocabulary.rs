//! The words between a machine and its driver: what to do, and what happened.

use std::time::Duration;

use crate::{
    engine::reason::Reason,
    handler::Ack,
    idempotency::{Claim, Fenced},
    policy::RetryPolicy,
    registry::NoId,
    transport::Settled,
};

/// What a machine has to know about its consumer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) policy: RetryPolicy,
    /// Set when duplicates are kept out.
    pub(crate) claims: Option<ClaimRules>,
    /// How often the broker may take a message back, as when the process dies over it, before it is set aside; zero is
    /// without end.
    pub(crate) crash_limit: u32,
}

/// What a machine has to know about claims.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClaimRules {
    pub(crate) in_progress_delay: Duration,
    pub(crate) no_id: NoId,
}

/// What a machine has to know about its message.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The number of this delivery as the policy counts, from 1.
    pub(crate) attempt: u32,
    /// What becomes of the message without any handler, because it cannot be handled.
    pub(crate) unfit: Option<Ack>,
    /// Whether there is a key to claim.
    pub(crate) has_key: bool,
    /// How often the broker has taken the message back.
    pub(crate) redeliveries: Redeliveries,
}

/// How often the broker has taken a message back, and who counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redeliveries {
    /// The broker does, as quorum queues do.
    Counted(u32),
    /// Nobody does: the count stands on the message, and this redelivery is still to be added.
    Uncounted(u32),
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Claim the key.
    Claim,
    /// Run the handler.
    Run,
    /// Wait, varied by this share in both directions.
    Wait { delay: Duration, jitter: f64 },
    /// Publish a copy.
    Move(Move),
    /// Mark the key as handled.
    Confirm,
    /// Free the key.
    Release,
    /// Accept the original.
    Ack,
    /// Give the original back.
    Requeue,
    /// Nothing: it is settled.
    Done(Outcome),
}

/// A copy of the message, for another place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Move {
    pub(crate) target: Target,
    /// The attempt that the copy carries.
    pub(crate) attempt: u32,
    /// Why the message is set aside; only on copies that are.
    pub(crate) reason: Option<Reason>,
    /// The redeliveries to write on the copy, when nobody else counts them.
    pub(crate) redeliveries: u32,
}

/// Where a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// Back to the queue that it came from.
    Source,
    /// To the queue in which retries wait this long.
    Rung(Duration),
    /// To the dead-letter queue.
    DeadLetter,
    /// To the parking queue.
    Parked,
}

impl Target {
    /// The word for logs and metrics.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Rung(_) => "rung",
            Self::DeadLetter => "dead_letter",
            Self::Parked => "parked",
        }
    }
}

/// What happened.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// The store answered a claim.
    Claimed(Claim),
    /// The store did not answer a claim.
    StoreUnreachable,
    /// The handler returned.
    Returned { ack: Ack, age: Option<Duration> },
    /// The handler was stopped without a result: at a shutdown, or because its claim was lost.
    Interrupted,
    /// The wait is over.
    Elapsed,
    /// The wait was cut short, by a shutdown or by the loss of the channel.
    WaitEnded,
    /// The copy is confirmed and in a queue.
    Moved,
    /// The copy is confirmed, but no queue took it.
    Unroutable,
    /// The copy was never sent.
    MoveRefused,
    /// The copy was refused, or nobody knows what became of it.
    MoveFailed,
    /// The store answered a confirm, or did not.
    Confirmed(Option<Fenced>),
    /// What the handler did in a transaction was not committed, or nobody knows.
    NotCommitted { ack: Ack, age: Option<Duration> },
    /// It was taken back, since somebody else has the claim.
    RolledBack,
    /// The store answered a release, or did not.
    Released,
    /// The original was settled, or its channel was gone.
    Settled(Settled),
}

/// What a delivery became.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The handler accepted it.
    Acked,
    /// It failed and is tried again.
    Retried,
    /// It was tried as often or as long as the policy allows, and is in the dead-letter queue.
    DeadLettered,
    /// The handler or a fatal error refused it, and it is in the dead-letter queue.
    Rejected,
    /// It is in the parking queue.
    Parked,
    /// The handler gave it back.
    Released,
    /// Somebody else handles the message; it waits for them.
    InProgress,
    /// The message had been handled before.
    Duplicate,
    /// acemq gave it back: at a shutdown, or because a store or a move failed.
    Requeued,
    /// Its channel was gone before it could be settled: the broker delivers it again.
    Lost,
}

impl Outcome {
    /// Every outcome, in the order of their declaration.
    pub const ALL: [Self; 10] = [
        Self::Acked,
        Self::Retried,
        Self::DeadLettered,
        Self::Rejected,
        Self::Parked,
        Self::Released,
        Self::InProgress,
        Self::Duplicate,
        Self::Requeued,
        Self::Lost,
    ];

    /// The word for logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acked => "acked",
            Self::Retried => "retried",
            Self::DeadLettered => "dead_lettered",
            Self::Rejected => "rejected",
            Self::Parked => "parked",
            Self::Released => "released",
            Self::InProgress => "in_progress",
            Self::Duplicate => "duplicate",
            Self::Requeued => "requeued",
            Self::Lost => "lost",
        }
    }
}

/// Something to count and to log on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// The rung is not there: the wait is spent in the consumer.
    RungMissing(Duration),
    /// A copy for this target could not be made: the original goes back.
    MoveAbandoned(Target),
    /// The handler is done, but the store could not be told: a duplicate would run.
    ConfirmFailed,
    /// The handler is done, but its claim had been lost.
    ClaimLost,
    /// The claim was lost while the handler ran, and the handler is told to stop.
    LeaseLost,
    /// The store could not be told that the lease goes on.
    RenewFailed,
    /// The store could not be told that the key is free: it stays taken until the lease ends.
    ReleaseFailed,
    /// The store could not be asked.
    StoreUnreachable,
    /// There is no id to claim: the handler runs without protection.
    Unprotected,
}

impl Note {
    /// The word for logs and metrics.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::RungMissing(_) => "rung_missing",
            Self::MoveAbandoned(_) => "move_abandoned",
            Self::ConfirmFailed => "confirm_failed",
            Self::ClaimLost => "claim_lost",
            Self::LeaseLost => "lease_lost",
            Self::RenewFailed => "renew_failed",
            Self::ReleaseFailed => "release_failed",
            Self::StoreUnreachable => "store_unreachable",
            Self::Unprotected => "unprotected",
        }
    }
}

/// The next effect, and what to count.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) effect: Effect,
    pub(crate) note: Option<Note>,
}

impl From<Effect> for Step {
    fn from(effect: Effect) -> Self {
        Self { effect, note: None }
    }
}

impl Effect {
    pub(super) fn noting(self, note: Note) -> Step {
        Step { effect: self, note: Some(note) }
    }
}
