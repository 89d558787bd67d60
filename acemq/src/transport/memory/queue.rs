//! One queue: its messages in order, and the consumers that have room for more.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    arguments::{Arguments, Kind, Overflow},
    message::{Message, Reason},
    route::Name,
};

/// How long RabbitMQ waits before it tries again to pass on a dead letter that it must not lose.
const KEPT_RETRY: Duration = Duration::from_mins(3);

/// The identity of a channel within the broker.
pub(super) type ChannelId = u64;

/// Where a message stands in its queue: returned ones of a quorum queue first, then by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    fresh: bool,
    number: u64,
}

/// A message in a queue, or on its way to a consumer.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) message: Arc<Message>,
    position: Position,
    expires: Option<Instant>,
    pub(super) redelivered: bool,
    /// How often it came back.
    returns: u64,
}

/// A message that died in a queue, and has to go on.
#[derive(Debug)]
pub(super) struct Dead {
    pub(super) queue: Name,
    pub(super) message: Arc<Message>,
    pub(super) reason: Reason,
    /// The queues that have it already, when this is not the first try.
    pub(super) taken_by: Vec<Name>,
}

/// A queue.
#[derive(Debug)]
pub(super) struct Queue {
    name: Name,
    pub(super) arguments: Arguments,
    ready: BTreeMap<Position, Stored>,
    next: u64,
    /// Deliveries that nobody has settled.
    pub(super) unacked: usize,
    pub(super) consumers: BTreeSet<ChannelId>,
    /// The consumers with room for more, in turn; only the broker's dispatch takes from it.
    pub(super) available: VecDeque<ChannelId>,
    /// Dead letters that found no queue and must not be lost, each with the time of the next try, in that order.
    kept: VecDeque<(Instant, Dead)>,
    /// The entry of this queue among the broker's deadlines.
    pub(super) deadline: Option<Instant>,
}

impl Queue {
    pub(super) fn new(name: Name, arguments: Arguments) -> Self {
        Self {
            name,
            arguments,
            ready: BTreeMap::new(),
            next: 0,
            unacked: 0,
            consumers: BTreeSet::new(),
            available: VecDeque::new(),
            kept: VecDeque::new(),
            deadline: None,
        }
    }

    pub(super) fn name(&self) -> &Name {
        &self.name
    }

    pub(super) fn purge(&mut self) {
        self.ready.clear();
    }

    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &Stored> {
        self.ready.values()
    }

    /// Whether a publish is turned away. A quorum queue takes one more than it says.
    pub(super) fn refuses(&self) -> bool {
        self.arguments.overflow == Overflow::RejectPublish
            && self.arguments.max_length.is_some_and(|most| {
                let length = self.ready.len() + self.kept.len();
                match self.arguments.kind {
                    Kind::Classic => length >= most,
                    Kind::Quorum => length > most,
                }
            })
    }

    /// Puts a new message at the end.
    pub(super) fn push(&mut self, message: Arc<Message>, now: Instant) {
        let own = message.lifetime();
        let lifetime = match (own, self.arguments.ttl) {
            (Some(own), Some(all)) => Some(own.min(all)),
            (own, all) => own.or(all),
        };
        let position = Position { fresh: true, number: self.number() };
        let stored = Stored {
            message,
            position,
            expires: lifetime.and_then(|lifetime| now.checked_add(lifetime)),
            redelivered: false,
            returns: 0,
        };
        self.ready.insert(position, stored);
    }

    /// Takes the first message out, for a consumer.
    pub(super) fn pop(&mut self) -> Option<Stored> {
        self.ready.pop_first().map(|(_, stored)| stored)
    }

    /// Puts a delivered message back: a classic queue where it was, a quorum queue behind the ones that came back before
    /// it, unless it has come back too often.
    pub(super) fn put_back(&mut self, mut stored: Stored, dead: &mut VecDeque<Dead>) {
        stored.redelivered = true;
        stored.returns = stored.returns.saturating_add(1);
        if self.arguments.delivery_limit.is_some_and(|limit| stored.returns > limit) {
            dead.push_back(self.bury(stored, Reason::DeliveryLimit));
            return;
        }
        if self.arguments.kind == Kind::Quorum {
            stored.position = Position { fresh: false, number: self.number() };
        }
        self.ready.insert(stored.position, stored);
    }

    /// Drops from the head what is over the limit.
    pub(super) fn shorten(&mut self, dead: &mut VecDeque<Dead>) {
        if self.arguments.overflow != Overflow::DropHead {
            return;
        }
        let Some(most) = self.arguments.max_length else {
            return;
        };
        while self.ready.len() > most {
            let Some(stored) = self.pop() else { return };
            dead.push_back(self.bury(stored, Reason::MaxLength));
        }
    }

    /// Drops from the head what is too old: a message behind one that lives longer has to wait for it.
    pub(super) fn expire(&mut self, now: Instant, dead: &mut VecDeque<Dead>) {
        while let Some(first) = self.ready.first_entry() {
            if first.get().expires.is_none_or(|expires| expires > now) {
                return;
            }
            let stored = first.remove();
            dead.push_back(self.bury(stored, Reason::Expired));
        }
    }

    /// Keeps a dead letter that found no queue, until a later try.
    pub(super) fn keep(&mut self, dead: Dead, now: Instant) {
        self.kept.push_back((now + KEPT_RETRY, dead));
    }

    /// Takes out the kept dead letters that are to be tried again.
    pub(super) fn retry_kept(&mut self, now: Instant, dead: &mut VecDeque<Dead>) {
        while self.kept.front().is_some_and(|(at, _)| *at <= now) {
            dead.extend(self.kept.pop_front().map(|(_, letter)| letter));
        }
    }

    /// When time alone changes something here.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let first = self.ready.first_key_value();
        let expires = first.and_then(|(_, stored)| stored.expires);
        let kept = self.kept.front().map(|(at, _)| *at);
        match (expires, kept) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// How often a message came back, where the queue counts it.
    pub(super) fn returns(&self, stored: &Stored) -> Option<u64> {
        (self.arguments.kind == Kind::Quorum).then_some(stored.returns)
    }

    fn bury(&self, stored: Stored, reason: Reason) -> Dead {
        Dead { queue: Arc::clone(&self.name), message: stored.message, reason, taken_by: Vec::new() }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
