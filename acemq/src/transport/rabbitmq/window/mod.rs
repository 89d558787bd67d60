//! Which outstanding publishes are routed, and which came back.
//!
//! The broker returns an unroutable message before it confirms it, but lapin hangs each return on whichever confirm it
//! handles next: every confirm takes the oldest return that waits, if one waits. So a confirm that brings a return says
//! nothing about its own message, and returns are matched by what is in them. What is certain:
//!
//! * A confirm without a return found none waiting. Its message was returned, if at all, before that, so by then an
//!   earlier confirm has taken the return, and the caller of [`Window::round`] has seen that confirm.
//! * A message whose confirm brought the return of another one is undecided. A later confirm without a return decides it in
//!   the same way, and so does the moment when no confirm is outstanding, since there are as many confirms as messages.

use std::{
    collections::{BTreeMap, HashMap, hash_map::RandomState},
    hash::BuildHasher,
};

use tokio::time::Instant;

/// What a message and its return have in common: message id, exchange and routing key. No two of them are outstanding at
/// once; the hash stands for them, and one that collides only has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(u64);

/// What became of one publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Routed,
    Returned { text: String },
    Nacked,
}

/// A confirm, with the return that lapin hung on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Confirm {
    pub(super) number: u64,
    pub(super) ack: bool,
    pub(super) returned: Option<(Key, String)>,
}

/// The publishes of one channel that are not decided.
#[derive(Debug)]
pub(super) struct Window<T> {
    slots: BTreeMap<u64, Slot<T>>,
    keys: HashMap<Key, u64>,
    hasher: RandomState,
    next: u64,
    /// Slots whose confirm is still to come.
    unconfirmed: usize,
    /// Slots whose sender still waits.
    live: usize,
    round: u64,
}

#[derive(Debug)]
struct Slot<T> {
    key: Key,
    mandatory: bool,
    deadline: Instant,
    /// Who waits; nothing after the deadline. The slot stays, since its return would otherwise pass for another's.
    sender: Option<T>,
    returned: Option<String>,
    /// The round in which its ack came with the return of another message.
    undecided_since: Option<u64>,
}

/// A return that belongs to no outstanding message: the account is wrong, and nothing on the channel can be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StrayReturn;

impl<T> Window<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: BTreeMap::new(),
            keys: HashMap::new(),
            hasher: RandomState::new(),
            next: 0,
            unconfirmed: 0,
            live: 0,
            round: 0,
        }
    }

    pub(super) fn key(&self, id: Option<&str>, exchange: &str, routing_key: &str) -> Key {
        Key(self.hasher.hash_one((id, exchange, routing_key)))
    }

    /// Whether somebody waits for a message with this key.
    pub(super) fn holds(&self, key: Key) -> bool {
        let slot = self.keys.get(&key).and_then(|number| self.slots.get(number));
        slot.is_some_and(|slot| slot.sender.is_some())
    }

    /// How many senders wait.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// How many have given up, and still have a place.
    pub(super) fn expired(&self) -> usize {
        self.slots.len() - self.live
    }

    /// Takes a publish in. Its key must not be held. From one that gave up it takes the key over: should both come back, the
    /// new one is called returned too early, which costs a second try but no message.
    pub(super) fn push(&mut self, key: Key, mandatory: bool, deadline: Instant, sender: T) -> u64 {
        let number = self.next;
        self.next += 1;
        self.keys.insert(key, number);
        let slot = Slot { key, mandatory, deadline, sender: Some(sender), returned: None, undecided_since: None };
        self.slots.insert(number, slot);
        self.unconfirmed += 1;
        self.live += 1;
        number
    }

    /// Takes a publish out without an answer of the broker.
    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let slot = self.slots.remove(&number)?;
        if self.keys.get(&slot.key) == Some(&number) {
            self.keys.remove(&slot.key);
        }
        self.unconfirmed -= usize::from(slot.undecided_since.is_none());
        self.live -= usize::from(slot.sender.is_some());
        slot.sender
    }

    /// Everybody who waits, in the order of publishing.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.keys.clear();
        self.unconfirmed = 0;
        self.live = 0;
        std::mem::take(&mut self.slots).into_values().filter_map(|slot| slot.sender)
    }

    /// When the next sender gives up.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let waiting = self.slots.values().find(|slot| slot.sender.is_some());
        waiting.map(|slot| slot.deadline)
    }

    /// The senders whose time is over. Deadlines are in the order of publishing.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<T> {
        let late = self.slots.values_mut().take_while(|slot| slot.deadline <= now);
        let late: Vec<T> = late.filter_map(|slot| slot.sender.take()).collect();
        self.live -= late.len();
        late
    }

    /// Takes all confirms that lapin has resolved and decides what they allow.
    ///
    /// `confirms` must be complete: every confirm that was resolved before one of them is among them, or was in a round
    /// before. `decide` is not called for those that gave up.
    pub(super) fn round(
        &mut self,
        confirms: &mut Vec<Confirm>,
        mut decide: impl FnMut(T, Fate),
    ) -> Result<(), StrayReturn> {
        self.round += 1;
        for confirm in confirms.iter_mut() {
            if let Some((key, text)) = confirm.returned.take() {
                let slot = self.keys.get(&key).and_then(|number| self.slots.get_mut(number));
                // Kept for the confirm, to tell it from one without.
                confirm.returned = Some((key, String::new()));
                slot.ok_or(StrayReturn)?.returned = Some(text);
            }
        }
        let mut none_waiting = false;
        let mut settle = |window: &mut Self, number, fate| {
            if let Some(sender) = window.remove(number) {
                decide(sender, fate);
            }
        };
        for Confirm { number, ack, returned } in confirms.drain(..) {
            none_waiting |= returned.is_none();
            let Some(slot) = self.slots.get_mut(&number) else {
                continue;
            };
            let fate = match slot.returned.take() {
                _ if !ack => Fate::Nacked,
                Some(text) => Fate::Returned { text },
                None if returned.is_none() || !slot.mandatory => Fate::Routed,
                None => {
                    slot.undecided_since = Some(self.round);
                    self.unconfirmed -= 1;
                    continue;
                }
            };
            settle(self, number, fate);
        }
        if self.slots.len() == self.unconfirmed {
            return Ok(());
        }
        let (round, all_in) = (self.round, self.unconfirmed == 0);
        let decided = self.slots.iter_mut().filter_map(|(number, slot)| {
            let since = slot.undecided_since?;
            match slot.returned.take() {
                Some(text) => Some((*number, Fate::Returned { text })),
                None if all_in || (none_waiting && since < round) => Some((*number, Fate::Routed)),
                None => None,
            }
        });
        for (number, fate) in decided.collect::<Vec<_>>() {
            settle(self, number, fate);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
