//! The books of a consumer: what was delivered, where each delivery is, and what it became.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use metrics::Gauge;
use tokio::{sync::watch, time::Instant};

use super::{Outcome, totals::Totals};

/// How many deliveries are where, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Present {
    /// Received, and before the gate: no handler has seen them.
    pub held: usize,
    /// Past the gate and before their handler, such as while they are claimed.
    pub starting: usize,
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
        self.held + self.starting + self.running + self.waiting + self.settling
    }

    /// Those that a drain waits for: they change something, or are about to.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.starting + self.running + self.settling
    }

    fn of(&mut self, stage: Stage) -> &mut usize {
        match stage {
            Stage::Held => &mut self.held,
            Stage::Starting => &mut self.starting,
            Stage::Running => &mut self.running,
            Stage::Waiting => &mut self.waiting,
            Stage::Settling => &mut self.settling,
        }
    }
}

impl std::ops::Add for Present {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            held: self.held + other.held,
            starting: self.starting + other.starting,
            running: self.running + other.running,
            waiting: self.waiting + other.waiting,
            settling: self.settling + other.settling,
        }
    }
}

/// Where a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Held,
    Starting,
    Running,
    Waiting,
    Settling,
}

/// Why acemq itself gives a delivery back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GaveBack {
    /// No handler has seen it.
    Unstarted,
    /// A shutdown ended its wait.
    Waiting,
    /// Its handler was told to stop, and did.
    Stopped,
    /// Its handler was told to stop, and did not.
    Abandoned,
    /// A store or a move failed.
    Failed,
}

/// How a delivery ended for the books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    /// Read when the outcome is that acemq gave it back.
    pub(crate) gave_back: GaveBack,
}

/// A handler that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oldest {
    /// The id of its message, if that has one.
    pub id: Option<String>,
    /// How long it has been running.
    pub age: Duration,
}

/// Everything that the books say, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Snapshot {
    pub(crate) totals: Totals,
    pub(crate) present: Present,
    /// Handlers that were given up, whatever became of their deliveries.
    pub(crate) given_up: u64,
}

impl std::ops::Add for Snapshot {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            totals: self.totals + other.totals,
            present: self.present + other.present,
            given_up: self.given_up + other.given_up,
        }
    }
}

/// The books of one consumer. Under one lock, so that they add up at every moment.
#[derive(Debug)]
pub(crate) struct Account {
    books: Mutex<Books>,
    /// Told whenever something has changed, for those who wait for quiet.
    changed: watch::Sender<()>,
    in_flight: Gauge,
}

#[derive(Debug, Default)]
struct Books {
    snapshot: Snapshot,
    last_arrival: Option<Instant>,
    last_settlement: Option<Instant>,
    /// By the order of their start, so that the first is the oldest.
    running: BTreeMap<u64, Started>,
    started: u64,
}

#[derive(Debug)]
struct Started {
    at: Instant,
    id: Option<String>,
}

/// The entry of a running handler; it is closed with the handler's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run(u64);

impl Account {
    pub(crate) fn new(in_flight: Gauge) -> Self {
        Self { books: Mutex::default(), changed: watch::Sender::new(()), in_flight }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn arrived(&self) {
        let mut books = self.books();
        books.snapshot.totals.delivered += 1;
        books.snapshot.present.held += 1;
        books.last_arrival = Some(Instant::now());
    }

    pub(crate) fn moved(&self, from: Stage, to: Stage) {
        if from != to {
            self.books().relocate(from, to);
            self.tell();
        }
    }

    /// A handler begins.
    pub(crate) fn began(&self, from: Stage, id: Option<&str>) -> Run {
        let id = id.map(str::to_owned);
        self.in_flight.increment(1.0);
        let mut books = self.books();
        books.relocate(from, Stage::Running);
        let run = books.started;
        books.started += 1;
        books.running.insert(run, Started { at: Instant::now(), id });
        Run(run)
    }

    /// A handler has ended; its delivery is being settled.
    pub(crate) fn ended(&self, run: Run) {
        let mut books = self.books();
        if books.running.remove(&run.0).is_some() {
            books.relocate(Stage::Running, Stage::Settling);
            drop(books);
            self.in_flight.decrement(1.0);
            self.tell();
        }
    }

    /// A handler that was told to stop is no longer waited for.
    pub(crate) fn gave_up(&self) {
        self.books().snapshot.given_up += 1;
    }

    pub(crate) fn settled(&self, from: Stage, end: End) {
        let mut books = self.books();
        books.snapshot.totals.count(end);
        let count = books.snapshot.present.of(from);
        *count = count.saturating_sub(1);
        books.last_settlement = Some(Instant::now());
        drop(books);
        self.tell();
    }

    fn tell(&self) {
        if self.changed.receiver_count() > 0 {
            self.changed.send_replace(());
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.books().snapshot
    }

    pub(crate) fn now(&self) -> Present {
        self.snapshot().present
    }

    pub(crate) fn last_arrival(&self) -> Option<Instant> {
        self.books().last_arrival
    }

    pub(crate) fn last_settlement(&self) -> Option<Instant> {
        self.books().last_settlement
    }

    /// The handler that has been running for the longest time.
    pub(crate) fn oldest(&self) -> Option<Oldest> {
        let books = self.books();
        let (_, oldest) = books.running.first_key_value()?;
        Some(Oldest { id: oldest.id.clone(), age: oldest.at.elapsed() })
    }

    /// Waits until the books look so.
    pub(crate) async fn until(&self, look: impl Fn(&Present) -> bool) {
        let mut changes = self.changed.subscribe();
        while !look(&self.now()) {
            // The sender is here.
            let _ = changes.changed().await;
        }
    }
}

impl Books {
    fn relocate(&mut self, from: Stage, to: Stage) {
        let present = &mut self.snapshot.present;
        let count = present.of(from);
        *count = count.saturating_sub(1);
        *present.of(to) += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAGES: [Stage; 5] = [Stage::Held, Stage::Starting, Stage::Running, Stage::Waiting, Stage::Settling];
    const GAVE_BACK: [GaveBack; 5] =
        [GaveBack::Unstarted, GaveBack::Waiting, GaveBack::Stopped, GaveBack::Abandoned, GaveBack::Failed];

    proptest! {
        #[test]
        fn at_every_moment_the_parts_add_up_to_what_was_delivered(
            steps in prop::collection::vec((0_usize..4, 0_usize..16, 0_usize..10, 0_usize..5), 0..200)
        ) {
            let account = Account::new(Gauge::noop());
            let mut here: Vec<(Stage, Option<Run>)> = Vec::new();
            for (what, which, outcome, to) in steps {
                let at = if here.is_empty() { 0 } else { which % here.len() };
                match what {
                    0 => {
                        account.arrived();
                        here.push((Stage::Held, None));
                    }
                    1 if !here.is_empty() => {
                        let (stage, run) = here.remove(at);
                        let stage = run.map_or(stage, |run| { account.ended(run); Stage::Settling });
                        let end = End { outcome: Outcome::ALL[outcome], gave_back: GAVE_BACK[to] };
                        account.settled(stage, end);
                    }
                    2 if !here.is_empty() && here[at].1.is_none() => {
                        let run = account.began(here[at].0, Some("id"));
                        here[at] = (Stage::Running, Some(run));
                    }
                    3 if !here.is_empty() && here[at].1.is_none() && STAGES[to] != Stage::Running => {
                        account.moved(here[at].0, STAGES[to]);
                        here[at].0 = STAGES[to];
                    }
                    _ => {}
                }
                let Snapshot { totals, present, .. } = account.snapshot();
                prop_assert_eq!(present.total(), here.len());
                prop_assert_eq!(totals.delivered, totals.settled() + u64::try_from(present.total()).unwrap());
                prop_assert_eq!(present.running > 0, account.oldest().is_some());
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_handler_is_the_one_that_began_first() {
        let account = Account::new(Gauge::noop());
        account.arrived();
        account.arrived();
        let first = account.began(Stage::Held, Some("first"));
        tokio::time::advance(Duration::from_secs(7)).await;
        account.began(Stage::Held, None);
        assert_eq!(account.oldest(), Some(Oldest { id: Some("first".to_owned()), age: Duration::from_secs(7) }));
        account.ended(first);
        assert_eq!(account.oldest(), Some(Oldest { id: None, age: Duration::ZERO }));
    }
}
