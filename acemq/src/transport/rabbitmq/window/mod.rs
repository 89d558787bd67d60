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

/// What a message and its return have in common: message id, exchange and routing key, as a hash.
///
/// Several outstanding messages may have the same one. Then a return is taken for the return of each: where they differ,
/// which takes a change on the broker in this moment, a routed message is called returned, and costs a second try. The
/// other way round a message would be lost.
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
    /// Messages that were called returned, less the returns that came, where that is not zero.
    owed: HashMap<Key, i64>,
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
            owed: HashMap::new(),
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

    /// How many senders wait.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// How many have given up, and still have a place.
    pub(super) fn expired(&self) -> usize {
        self.slots.len() - self.live
    }

    /// Takes a publish in.
    pub(super) fn push(&mut self, key: Key, mandatory: bool, deadline: Instant, sender: T) -> u64 {
        let number = self.next;
        self.next += 1;
        let slot = Slot { key, mandatory, deadline, sender: Some(sender), returned: None, undecided_since: None };
        self.slots.insert(number, slot);
        self.unconfirmed += 1;
        self.live += 1;
        number
    }

    /// Takes a publish out without an answer of the broker.
    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let slot = self.slots.remove(&number)?;
        if slot.returned.is_some() {
            self.owe(slot.key, 1);
        }
        self.unconfirmed -= usize::from(slot.undecided_since.is_none());
        self.live -= usize::from(slot.sender.is_some());
        slot.sender
    }

    /// Everybody who waits, in the order of publishing.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.owed.clear();
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
        for (key, text) in confirms.iter().filter_map(|confirm| confirm.returned.as_ref()) {
            self.returned(*key, text)?;
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
            let fate = match slot.returned.clone() {
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
        // Mostly all slots wait for their confirm, and then there is nothing to look for.
        if self.slots.len() > self.unconfirmed {
            let (round, all_in) = (self.round, self.unconfirmed == 0);
            let decided = self.slots.iter().filter_map(|(number, slot)| {
                let since = slot.undecided_since?;
                match slot.returned.clone() {
                    Some(text) => Some((*number, Fate::Returned { text })),
                    None if all_in || (none_waiting && since < round) => Some((*number, Fate::Routed)),
                    None => None,
                }
            });
            for (number, fate) in decided.collect::<Vec<_>>() {
                settle(self, number, fate);
            }
        }
        if self.slots.is_empty() {
            // All returns have come, whatever they were taken for.
            self.owed.clear();
        }
        Ok(())
    }

    /// Marks what a return is taken for.
    fn returned(&mut self, key: Key, text: &str) -> Result<(), StrayReturn> {
        let mut found = false;
        for slot in self.slots.values_mut().filter(|slot| slot.key == key) {
            slot.returned.get_or_insert_with(|| text.to_owned());
            found = true;
        }
        let owed = self.owe(key, -1);
        if found || owed >= 0 { Ok(()) } else { Err(StrayReturn) }
    }

    fn owe(&mut self, key: Key, more: i64) -> i64 {
        let owed = self.owed.entry(key).or_default();
        *owed += more;
        let owed = *owed;
        if owed == 0 {
            self.owed.remove(&key);
        }
        owed
    }
}

#[cfg(test)]
mod tests;
