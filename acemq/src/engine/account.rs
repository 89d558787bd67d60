//! The books of a consumer: what was delivered, and what each delivery became.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::{sync::watch, time::Instant};

use super::Outcome;

/// How many deliveries are where, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Present {
    /// Received, and before the gate: no handler has seen them.
    pub held: usize,
    /// In a handler.
    pub running: usize,
    /// Waiting in the consumer for their next try.
    pub waiting: usize,
    /// Being moved or settled.
    pub settling: usize,
}

impl Present {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> usize {
        self.held + self.running + self.waiting + self.settling
    }
}

/// Where a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Held,
    Running,
    Waiting,
    Settling,
}

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
    pub requeued: u64,
    /// Not settled before their channel was gone.
    pub lost: u64,
}

impl Totals {
    /// All deliveries that have been settled.
    #[must_use]
    pub fn settled(&self) -> u64 {
        self.acked
            + self.retried
            + self.dead_lettered
            + self.rejected
            + self.parked
            + self.released
            + self.in_progress
            + self.duplicate
            + self.requeued
            + self.lost
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
            requeued: self.requeued + other.requeued,
            lost: self.lost + other.lost,
        }
    }
}

/// The books of one consumer.
#[derive(Debug)]
pub(crate) struct Account {
    delivered: AtomicU64,
    outcomes: [AtomicU64; Outcome::ALL.len()],
    present: Mutex<Present>,
    last_arrival: Mutex<Option<Instant>>,
    /// Told whenever something has changed, for those who wait for quiet.
    changed: watch::Sender<()>,
}

impl Account {
    pub(crate) fn new() -> Self {
        Self {
            delivered: AtomicU64::new(0),
            outcomes: Default::default(),
            present: Mutex::default(),
            last_arrival: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }

    pub(crate) fn arrived(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        *self.last_arrival.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.present(|present| present.held += 1);
    }

    pub(crate) fn moved(&self, from: Stage, to: Stage) {
        if from != to {
            self.present(|present| {
                *stage(present, from) = stage(present, from).saturating_sub(1);
                *stage(present, to) += 1;
            });
        }
    }

    pub(crate) fn settled(&self, from: Stage, outcome: Outcome) {
        if let Some(counter) = self.outcomes.get(outcome as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.present(|present| *stage(present, from) = stage(present, from).saturating_sub(1));
        if self.changed.receiver_count() > 0 {
            self.changed.send_replace(());
        }
    }

    pub(crate) fn now(&self) -> Present {
        *self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn last_arrival(&self) -> Option<Instant> {
        *self.last_arrival.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(crate) fn totals(&self) -> Totals {
        let of =
            |outcome: Outcome| self.outcomes.get(outcome as usize).map_or(0, |counter| counter.load(Ordering::Relaxed));
        Totals {
            delivered: self.delivered.load(Ordering::Relaxed),
            acked: of(Outcome::Acked),
            retried: of(Outcome::Retried),
            dead_lettered: of(Outcome::DeadLettered),
            rejected: of(Outcome::Rejected),
            parked: of(Outcome::Parked),
            released: of(Outcome::Released),
            in_progress: of(Outcome::InProgress),
            duplicate: of(Outcome::Duplicate),
            requeued: of(Outcome::Requeued),
            lost: of(Outcome::Lost),
        }
    }

    fn present(&self, change: impl FnOnce(&mut Present)) {
        change(&mut self.present.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn stage(present: &mut Present, stage: Stage) -> &mut usize {
    match stage {
        Stage::Held => &mut present.held,
        Stage::Running => &mut present.running,
        Stage::Waiting => &mut present.waiting,
        Stage::Settling => &mut present.settling,
    }
}
