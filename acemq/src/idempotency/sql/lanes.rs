use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    runtime::Handle,
    sync::oneshot::{self, Receiver, Sender},
    task::yield_now,
    time::timeout,
};

use super::{
    backend::Backend,
    op::{Kind, Op, Verdict},
    store::Inner,
};
use crate::idempotency::StoreError;

pub(super) type Answer = Result<Verdict, StoreError>;

/// How many operations go into one statement.
const BATCH: usize = 256;

/// How many operations wait in a lane at most: more than a consumer can have deliveries in hand.
const WAITING: usize = 100_000;

/// Where operations of one kind meet.
///
/// The first ones go to the database at once, by themselves and on the task that asks. Those that come while they are on
/// their way wait together, and the next to finish takes all of them along in one statement.
#[derive(Debug, Default)]
pub(super) struct Lane {
    state: Mutex<State>,
}

/// The lanes of a store.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    confirm: Lane,
    renew: Lane,
    release: Lane,
    claim: Lane,
}

impl Lanes {
    pub(super) fn of(&self, kind: Kind) -> &Lane {
        match kind {
            Kind::Confirm => &self.confirm,
            Kind::Renew => &self.renew,
            Kind::Release => &self.release,
            Kind::Claim => &self.claim,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Waiting>,
    running: usize,
}

/// An operation, and who waits for it.
#[derive(Debug)]
pub(super) struct Waiting {
    op: Op,
    caller: Caller,
}

#[derive(Debug)]
pub(super) struct Caller(Sender<Answer>);

impl Waiting {
    fn is_wanted(&self) -> bool {
        self.caller.wants(self.op.kind)
    }

    pub(super) fn apart(all: Vec<Self>) -> (Vec<Op>, Vec<Caller>) {
        all.into_iter().map(|waiting| (waiting.op, waiting.caller)).unzip()
    }
}

impl Caller {
    /// Whether it is still to be done: who no longer waits for a claim does not want to hold it, but a confirmation is as true
    /// as before.
    pub(super) fn wants(&self, kind: Kind) -> bool {
        match kind {
            Kind::Claim | Kind::Renew => !self.0.is_closed(),
            Kind::Confirm | Kind::Release => true,
        }
    }

    pub(super) fn tell(self, answer: Answer) {
        // Who has gone does not miss it.
        let _ = self.0.send(answer);
    }
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to have one statement on its way in a lane.
///
/// Dropped while others wait, it goes on to a task that serves them.
#[derive(Debug)]
struct Slot<D: Backend> {
    store: Arc<Inner<D>>,
    kind: Kind,
    owner: Owner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Who asked for one operation.
    Caller,
    /// A task that serves those who wait; it gives the slot back itself, unless its runtime ends before.
    Task,
    /// Nobody any more.
    Nobody,
}

impl<D: Backend> Slot<D> {
    /// Takes those who wait along, or gives the slot back if there are none.
    fn take(&mut self) -> Vec<Waiting> {
        let mut state = self.store.lane(self.kind).lock();
        if state.waiting.is_empty() {
            state.running -= 1;
            self.owner = Owner::Nobody;
            return Vec::new();
        }
        let count = state.waiting.len().min(BATCH);
        state.waiting.drain(..count).collect()
    }
}

impl<D: Backend> Drop for Slot<D> {
    fn drop(&mut self) {
        if self.owner == Owner::Nobody {
            return;
        }
        let mut state = self.store.lane(self.kind).lock();
        if self.owner == Owner::Caller
            && !state.waiting.is_empty()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(state);
            runtime.spawn(serve(Self { store: Arc::clone(&self.store), kind: self.kind, owner: Owner::Task }));
            return;
        }
        state.running -= 1;
        if state.running == 0 {
            // Nobody is left to serve those who wait. They ask again, on runtimes that are still there.
            state.waiting.clear();
        }
    }
}

async fn serve<D: Backend>(mut slot: Slot<D>) {
    loop {
        let mut batch = slot.take();
        if slot.owner == Owner::Nobody {
            return;
        }
        batch.retain(Waiting::is_wanted);
        // After the limit nobody waits for these any more.
        let _ = timeout(slot.store.settings.timeout, slot.store.carry(batch)).await;
        // They ask for the next thing at once: what is taken after their turn is a whole batch and not the first few of it.
        yield_now().await;
    }
}

enum Entry<D: Backend> {
    Go(Slot<D>),
    Wait(Receiver<Answer>),
    Full,
}

impl<D: Backend> Inner<D> {
    /// Has `op` done, together with whatever else is asked for at the same time, or gives up: the wait for others is part of
    /// the answer's time.
    pub(super) async fn submit(self: &Arc<Self>, op: Op) -> Answer {
        let answer = self.within_limit(async { Ok(self.take_part(op).await) }).await;
        answer.unwrap_or_else(|failure| Err(self.failed(failure)))
    }

    async fn take_part(self: &Arc<Self>, op: Op) -> Answer {
        loop {
            match self.enter(&op) {
                // In a box of its own: whoever only waits needs no room for it.
                Entry::Go(_slot) => return Box::pin(self.carry_one(&op)).await,
                Entry::Full => {
                    let why = format!("{WAITING} operations wait for the database already");
                    return Err(StoreError::Unreachable { why });
                }
                Entry::Wait(answer) => {
                    if let Ok(answer) = answer.await {
                        return answer;
                    }
                }
            }
        }
    }

    fn enter(self: &Arc<Self>, op: &Op) -> Entry<D> {
        let mut state = self.lane(op.kind).lock();
        if state.running < D::AT_ONCE {
            state.running += 1;
            return Entry::Go(Slot { store: Arc::clone(self), kind: op.kind, owner: Owner::Caller });
        }
        if state.waiting.len() >= WAITING {
            // Callers that gave up while the database was away have left them behind: they go first, whatever they are.
            state.waiting.retain(|waiting| !waiting.caller.0.is_closed());
        }
        if state.waiting.len() >= WAITING {
            return Entry::Full;
        }
        let (answer, receiver) = oneshot::channel();
        state.waiting.push_back(Waiting { op: op.clone(), caller: Caller(answer) });
        Entry::Wait(receiver)
    }
}
