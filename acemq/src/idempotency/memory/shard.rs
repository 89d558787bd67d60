use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashTable;
use uuid::Uuid;

use super::timers::{Due, Fate, Timers};
use crate::idempotency::{Claim, Fenced};

/// How many ends an operation deals with besides its own work: what keeps expiry from ever being a scan.
const SWEPT: usize = 4;

/// The entries of the whole store, and how many there may be.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) cap: usize,
    pub(super) taken: AtomicUsize,
}

impl Room {
    fn take(&self) -> bool {
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| (taken < self.cap).then_some(taken + 1))
            .is_ok()
    }

    fn give(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// There is no room for another entry.
#[derive(Debug)]
pub(super) struct NoRoom;

/// A time in nanoseconds since the store was made, and what is asked for from then on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) now: u64,
    pub(super) ahead: u64,
}

impl Span {
    fn end(self) -> u64 {
        self.now.saturating_add(self.ahead)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Claimed,
    Confirmed,
}

#[derive(Debug)]
struct Slot {
    key: Box<str>,
    hash: u64,
    token: Uuid,
    ends: u64,
    /// Counts the changes of `ends`: a [`Due`] of an earlier one means nothing any more.
    generation: u32,
    state: State,
}

/// The entries whose keys have the same few bits in their hashes.
#[derive(Debug, Default)]
pub(super) struct Shard {
    table: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    leases: Timers,
    retentions: Timers,
}

impl Shard {
    pub(super) fn claim(
        &mut self,
        (hash, key): (u64, &str),
        token: Uuid,
        lease: Span,
        room: &Room,
    ) -> Result<Claim, NoRoom> {
        self.tidy(lease.now, room);
        let Some((index, slot)) = self.find(hash, key) else {
            if !room.take() {
                return Err(NoRoom);
            }
            self.insert(hash, key, token, lease);
            return Ok(Claim::Claimed);
        };
        if slot.ends > lease.now {
            if slot.state == State::Confirmed {
                return Ok(Claim::Duplicate);
            }
            if slot.token != token {
                return Ok(Claim::InProgress);
            }
        }
        slot.token = token;
        self.set(index, State::Claimed, lease);
        Ok(Claim::Claimed)
    }

    pub(super) fn confirm(&mut self, (hash, key): (u64, &str), token: Uuid, to: Span) -> Fenced {
        match self.find(hash, key) {
            Some((index, slot)) if slot.token == token => {
                self.set(index, State::Confirmed, to);
                Fenced::Held
            }
            _ => Fenced::Lost,
        }
    }

    pub(super) fn renew(&mut self, (hash, key): (u64, &str), token: Uuid, lease: Span) -> Fenced {
        match self.find(hash, key) {
            Some((index, slot)) if slot.token == token && slot.state == State::Claimed => {
                self.set(index, State::Claimed, lease);
                Fenced::Held
            }
            _ => Fenced::Lost,
        }
    }

    pub(super) fn release(&mut self, (hash, key): (u64, &str), token: Uuid, room: &Room) -> Fenced {
        match self.find(hash, key) {
            Some((index, slot)) if slot.token == token && slot.state == State::Claimed => {
                self.remove(index, room);
                Fenced::Held
            }
            _ => Fenced::Lost,
        }
    }

    /// Removes up to `most` entries whose time has ended.
    pub(super) fn purge(&mut self, now: u64, most: usize, room: &Room) -> usize {
        let mut removed = 0;
        for claims in [true, false] {
            let mut timers = std::mem::take(self.timers(claims));
            timers.sweep(usize::MAX, |due| match self.current(due) {
                None => Fate::Remove,
                Some(_) if due.at <= now && removed < most => {
                    self.remove(due.slot, room);
                    removed += 1;
                    Fate::Remove
                }
                Some(_) => Fate::Keep,
            });
            *self.timers(claims) = timers;
        }
        removed
    }

    /// Removes the confirmed entry whose retention ends first, and says whether there was one.
    pub(super) fn forget(&mut self, room: &Room) -> bool {
        while let Some(due) = self.retentions.pop_earliest() {
            if self.current(due).is_some() {
                self.remove(due.slot, room);
                return true;
            }
        }
        false
    }

    /// Removes what has become meaningless, a little at a time.
    ///
    /// A claim whose lease has ended stays: until somebody takes it over its holder may still confirm it.
    fn tidy(&mut self, now: u64, room: &Room) {
        let mut leases = std::mem::take(&mut self.leases);
        leases.sweep(SWEPT, |due| match self.current(due) {
            None => Fate::Remove,
            Some(_) => Fate::Keep,
        });
        // Releases and renewals leave their ends behind; a claim that stays at the front of the queue must not pile them up.
        if leases.len() > 64 + 2 * self.table.len() {
            leases.retain(|due| self.current(*due).is_some());
        }
        self.leases = leases;

        let mut retentions = std::mem::take(&mut self.retentions);
        retentions.sweep(SWEPT, |due| match self.current(due) {
            None => Fate::Remove,
            Some(_) if due.at <= now => {
                self.remove(due.slot, room);
                Fate::Remove
            }
            Some(_) => Fate::Keep,
        });
        self.retentions = retentions;
    }

    #[cfg(test)]
    pub(super) fn ends(&self) -> usize {
        self.leases.len() + self.retentions.len()
    }

    fn timers(&mut self, claims: bool) -> &mut Timers {
        if claims { &mut self.leases } else { &mut self.retentions }
    }

    fn find(&mut self, hash: u64, key: &str) -> Option<(u32, &mut Slot)> {
        let index = *self.table.find(hash, |index| is(&self.slots, *index, hash, key))?;
        Some((index, slot(&mut self.slots, index)?))
    }

    /// The slot that `due` is about, if it has not moved on.
    fn current(&self, due: Due) -> Option<&Slot> {
        self.slots
            .get(usize::try_from(due.slot).ok()?)
            .filter(|slot| slot.generation == due.generation && slot.state != State::Free)
    }

    fn insert(&mut self, hash: u64, key: &str, token: Uuid, lease: Span) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { key: Box::default(), hash: 0, token, ends: 0, generation: 0, state: State::Free });
            // A shard of four thousand million entries does not fit into memory.
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(slot) = slot(&mut self.slots, index) {
            slot.key = Box::from(key);
            slot.hash = hash;
            slot.token = token;
        }
        let slots = &self.slots;
        self.table.insert_unique(hash, index, |index| hash_of(slots, *index));
        self.set(index, State::Claimed, lease);
    }

    fn set(&mut self, index: u32, state: State, span: Span) {
        let Some(slot) = slot(&mut self.slots, index) else {
            return;
        };
        slot.state = state;
        slot.ends = span.end();
        slot.generation = slot.generation.wrapping_add(1);
        let due = Due { at: slot.ends, slot: index, generation: slot.generation };
        self.timers(state == State::Claimed).push(span.ahead, due);
    }

    fn remove(&mut self, index: u32, room: &Room) {
        let Some(slot) = slot(&mut self.slots, index) else {
            return;
        };
        slot.state = State::Free;
        slot.generation = slot.generation.wrapping_add(1);
        slot.key = Box::default();
        if let Ok(entry) = self.table.find_entry(slot.hash, |other| *other == index) {
            entry.remove();
        }
        self.free.push(index);
        room.give();
    }
}

fn slot(slots: &mut [Slot], index: u32) -> Option<&mut Slot> {
    slots.get_mut(usize::try_from(index).ok()?)
}

fn is(slots: &[Slot], index: u32, hash: u64, key: &str) -> bool {
    usize::try_from(index)
        .ok()
        .and_then(|index| slots.get(index))
        .is_some_and(|slot| slot.hash == hash && *slot.key == *key)
}

fn hash_of(slots: &[Slot], index: u32) -> u64 {
    usize::try_from(index).ok().and_then(|index| slots.get(index)).map_or(0, |slot| slot.hash)
}
