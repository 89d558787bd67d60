//! The state of one broker behind one lock, and the task that lets time pass in it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::{
    sync::{Notify, oneshot, watch},
    task::AbortHandle,
    time::Instant,
};

use super::{
    deliver::Consumer,
    publish::Answer,
    queue::{ChannelId, Dead, Queue},
    route::{Exchange, Name},
};
use crate::{
    topology::ExchangeKind,
    transport::{ConnectionState, Lane, Role},
};

/// The identity of a connection within the broker.
pub(super) type ConnectionId = u64;

/// One broker, shared by its handles and connections.
pub(super) struct Broker {
    state: Mutex<State>,
    /// Tells those who wait for a condition that something may have changed.
    pub(super) changed: Notify,
    /// Tells the timer that its deadline is no longer the first one. Apart from the broker, so that the timer does not
    /// keep the broker alive.
    timer: Arc<Notify>,
}

/// Everything that a broker knows. Nothing in here waits.
#[derive(Debug)]
pub(super) struct State {
    pub(super) exchanges: BTreeMap<String, Exchange>,
    pub(super) queues: HashMap<Name, Queue>,
    pub(super) connections: BTreeMap<ConnectionId, Link>,
    pub(super) consumers: HashMap<ChannelId, Consumer>,
    /// When time changes a queue: one entry at most for each.
    deadlines: BTreeSet<(Instant, Name)>,
    /// What died and has not gone on yet; empty between operations.
    pub(super) dead: VecDeque<Dead>,
    /// Confirms that are held back.
    pub(super) unconfirmed: Vec<Unconfirmed>,
    pub(super) faults: Faults,
    pub(super) max_message_size: Option<usize>,
    pub(super) now: Instant,
    born: (Instant, Duration),
    last_id: u64,
    timer: Timer,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) role: Role,
    pub(super) state: watch::Sender<ConnectionState>,
    pub(super) channels: BTreeSet<ChannelId>,
}

/// A publish that is in the queues, and whose answer is held back.
#[derive(Debug)]
pub(super) struct Unconfirmed {
    pub(super) connection: ConnectionId,
    pub(super) lane: Lane,
    pub(super) answer: Answer,
    /// Never answered, not even when the others are.
    pub(super) lost: bool,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// What tests have asked to go wrong.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) refuse_connections: bool,
    pub(super) blocked: Option<String>,
    pub(super) nacks: usize,
    pub(super) lost_confirms: usize,
    pub(super) stalled: bool,
}

#[derive(Debug, Default)]
struct Timer {
    /// What the task sleeps until.
    armed: Option<Instant>,
    task: Option<AbortHandle>,
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").finish_non_exhaustive()
    }
}

impl Broker {
    pub(super) fn new() -> Arc<Self> {
        let now = Instant::now();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let exchanges = [
            ("amq.direct", ExchangeKind::Direct),
            ("amq.fanout", ExchangeKind::Fanout),
            ("amq.topic", ExchangeKind::Topic),
        ];
        Arc::new(Self {
            state: Mutex::new(State {
                exchanges: exchanges.map(|(name, kind)| (name.to_owned(), Exchange::new(kind))).into(),
                queues: HashMap::new(),
                connections: BTreeMap::new(),
                consumers: HashMap::new(),
                deadlines: BTreeSet::new(),
                dead: VecDeque::new(),
                unconfirmed: Vec::new(),
                faults: Faults::default(),
                max_message_size: None,
                now,
                born: (now, since_1970.unwrap_or_default()),
                last_id: 0,
                timer: Timer::default(),
            }),
            changed: Notify::new(),
            timer: Arc::new(Notify::new()),
        })
    }

    /// Does something to the state as it is now.
    pub(super) fn with<R>(self: &Arc<Self>, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.let_time_pass();
        let result = act(&mut state);
        self.arm(&mut state);
        drop(state);
        self.changed.notify_waiters();
        result
    }

    /// Looks at the state as it is now.
    ///
    /// Wakes nobody: those who wait for a condition look at the state themselves.
    pub(super) fn look<R>(self: &Arc<Self>, look: impl FnOnce(&State) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.let_time_pass();
        let result = look(&state);
        self.arm(&mut state);
        result
    }

    /// Sees to it that somebody wakes up for the first deadline.
    fn arm(self: &Arc<Self>, state: &mut State) {
        let first = state.deadlines.first().map(|(at, _)| *at);
        // A task that ended with its runtime has never said so.
        let running = state.timer.task.as_ref().is_some_and(|task| !task.is_finished());
        match first {
            // A later deadline is found when the task wakes up for the old one.
            Some(first) if running && state.timer.armed.is_some_and(|armed| armed <= first) => {}
            None if !running => {}
            _ if running => {
                state.timer.armed = first;
                self.timer.notify_one();
            }
            // Without a runtime, time passes when somebody looks.
            first => {
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    state.timer.armed = first;
                    let timer = run_timer(Arc::downgrade(self), Arc::clone(&self.timer));
                    state.timer.task = Some(runtime.spawn(timer).abort_handle());
                }
            }
        }
    }

    /// Lets the time pass that has passed, and says when it next has to.
    fn wake(&self) -> Option<Instant> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.let_time_pass();
        let first = state.deadlines.first().map(|(at, _)| *at);
        state.timer.armed = first;
        if first.is_none() {
            state.timer.task = None;
        }
        drop(state);
        self.changed.notify_waiters();
        first
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = state.timer.task.take() {
            task.abort();
        }
    }
}

/// Wakes the broker at its deadlines, while it has any.
async fn run_timer(broker: Weak<Broker>, changed: Arc<Notify>) {
    loop {
        let Some(next) = broker.upgrade().and_then(|broker| broker.wake()) else {
            return;
        };
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = changed.notified() => {}
        }
    }
}

impl State {
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Seconds since 1970, by a clock that tests can move.
    pub(super) fn unix_time(&self) -> u64 {
        let (born, since_1970) = self.born;
        (since_1970 + self.now.saturating_duration_since(born)).as_secs()
    }

    fn let_time_pass(&mut self) {
        self.now = Instant::now();
        while let Some((at, queue)) = self.deadlines.first().cloned() {
            if at > self.now {
                return;
            }
            self.refresh(&queue);
            self.bury_the_dead();
        }
    }

    /// Lets a queue do what is due, after something happened to it. The dead stay to be buried.
    pub(super) fn refresh(&mut self, name: &Name) {
        let Some(queue) = self.queues.get_mut(name) else {
            return;
        };
        queue.retry_kept(self.now, &mut self.dead);
        queue.expire(self.now, &mut self.dead);
        self.dispatch(name);
        let Some(queue) = self.queues.get_mut(name) else {
            return;
        };
        queue.shorten(&mut self.dead);
        self.schedule(name);
    }

    /// Enters the next deadline of a queue.
    pub(super) fn schedule(&mut self, name: &Name) {
        let Some(queue) = self.queues.get_mut(name) else {
            return;
        };
        let next = queue.next_deadline();
        if queue.deadline != next {
            if let Some(old) = queue.deadline {
                self.deadlines.remove(&(old, Arc::clone(name)));
            }
            if let Some(next) = next {
                self.deadlines.insert((next, Arc::clone(name)));
            }
            queue.deadline = next;
        }
    }

    /// Drops the ready messages of a queue.
    pub(super) fn purge(&mut self, queue: &str) {
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.purge();
            let name = Arc::clone(queue.name());
            self.schedule(&name);
        }
    }

    /// Strikes the deadline of a queue that is gone.
    pub(super) fn forget_deadline(&mut self, queue: &Queue) {
        if let Some(deadline) = queue.deadline {
            self.deadlines.remove(&(deadline, Arc::clone(queue.name())));
        }
    }
}
