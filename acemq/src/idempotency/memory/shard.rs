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

/// What stands for a key: 128 bits of two hashes that nobody outside can foresee.
///
/// Two of a million keys have the same with a probability of one in 10²⁶, far below that of a memory that forgets; without
/// the keys themselves an entry is small, and finding one touches nothing but its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) hash: u64,
    pub(super) check: u64,
}

#[derive(Debug)]
struct Slot {
    mark: Mark,
    token: Uuid,
    ends: u64,
    /// Counts the changes of `ends`: a [`Due`] of an earlier one means nothing any more.
    generation: u32,
    state: State,
}

/// The entries whose keys have the same few bits in their hashes.
#[derive(Debug)]
pub(super) struct Shard {
    table: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    retentions: Timers,
    /// No lease ends before this; so nobody looks through the slots for one without need.
    leases_last_until: u64,
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            table: HashTable::default(),
            slots: Vec::new(),
            free: Vec::new(),
            retentions: Timers::default(),
            leases_last_until: u64::MAX,
        }
    }
}

impl Shard {
    pub(super) fn claim(&mut self, mark: Mark, token: Uuid, lease: Span, room: &Room) -> Result<Claim, NoRoom> {
        // A claim whose lease has ended stays: until somebody takes it over its holder may still confirm it.
        self.end_retentions(lease.now, SWEPT, SWEPT, room);
        let Some((index, slot)) = self.find(mark) else {
            if !room.take() {
                return Err(NoRoom);
            }
            self.insert(mark, token, lease);
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

    pub(super) fn confirm(&mut self, mark: Mark, token: Uuid, to: Span) -> Fenced {
        match self.find(mark) {
            Some((index, slot)) if slot.token == token => {
                self.set(index, State::Confirmed, to);
                Fenced::Held
            }
            _ => Fenced::Lost,
        }
    }

    pub(super) fn renew(&mut self, mark: Mark, token: Uuid, lease: Span) -> Fenced {
        match self.find(mark) {
            Some((index, slot)) if slot.token == token && slot.state == State::Claimed => {
                self.set(index, State::Claimed, lease);
                Fenced::Held
            }
            _ => Fenced::Lost,
        }
    }

    pub(super) fn release(&mut self, mark: Mark, token: Uuid, room: &Room) -> Fenced {
        match self.find(mark) {
            Some((index, slot)) if slot.token == token && slot.state == State::Claimed => {
                self.remove(index, room);
                Fenced::Held
            }
            _ => Fenced::Lost,
        }
    }

    /// Removes up to `most` entries whose time has ended.
    pub(super) fn purge(&mut self, now: u64, most: usize, room: &Room) -> usize {
        let removed = self.end_retentions(now, usize::MAX, most, room);
        removed + self.end_leases(now, most - removed, room)
    }

    fn end_leases(&mut self, now: u64, most: usize, room: &Room) -> usize {
        if self.leases_last_until > now {
            return 0;
        }
        let mut removed = 0;
        let mut last_until = u64::MAX;
        for index in 0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX) {
            let ends = match slot(&mut self.slots, index) {
                Some(Slot { state: State::Claimed, ends, .. }) => *ends,
                _ => continue,
            };
            if ends <= now && removed < most {
                self.remove(index, room);
                removed += 1;
            } else {
                last_until = last_until.min(ends);
            }
        }
        self.leases_last_until = last_until;
        removed
    }

    /// Looks at no more than `looks` ends, and removes no more than `most` entries.
    fn end_retentions(&mut self, now: u64, looks: usize, most: usize, room: &Room) -> usize {
        let mut removed = 0;
        let mut retentions = std::mem::take(&mut self.retentions);
        retentions.sweep(looks, |due| match self.current(due) {
            None => Fate::Remove,
            Some(_) if due.at <= now && removed < most => {
                self.remove(due.slot, room);
                removed += 1;
                Fate::Remove
            }
            Some(_) => Fate::Keep,
        });
        self.retentions = retentions;
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

    #[cfg(test)]
    pub(super) fn ends(&self) -> usize {
        self.retentions.len()
    }

    fn find(&mut self, mark: Mark) -> Option<(u32, &mut Slot)> {
        let index = *self.table.find(mark.hash, |index| is(&self.slots, *index, mark))?;
        Some((index, slot(&mut self.slots, index)?))
    }

    /// The slot that `due` is about, if it has not moved on.
    fn current(&self, due: Due) -> Option<&Slot> {
        self.slots
            .get(usize::try_from(due.slot).ok()?)
            .filter(|slot| slot.generation == due.generation && slot.state != State::Free)
    }

    fn insert(&mut self, mark: Mark, token: Uuid, lease: Span) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { mark, token, ends: 0, generation: 0, state: State::Free });
            // A shard of four thousand million entries does not fit into memory.
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(slot) = slot(&mut self.slots, index) {
            slot.mark = mark;
            slot.token = token;
        }
        let slots = &self.slots;
        self.table.insert_unique(mark.hash, index, |index| hash_of(slots, *index));
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
        match state {
            State::Confirmed => self.retentions.push(span.ahead, due),
            State::Claimed | State::Free => self.leases_last_until = self.leases_last_until.min(due.at),
        }
    }

    fn remove(&mut self, index: u32, room: &Room) {
        let Some(slot) = slot(&mut self.slots, index) else {
            return;
        };
        slot.state = State::Free;
        slot.generation = slot.generation.wrapping_add(1);
        if let Ok(entry) = self.table.find_entry(slot.mark.hash, |other| *other == index) {
            entry.remove();
        }
        self.free.push(index);
        room.give();
    }
}

fn slot(slots: &mut [Slot], index: u32) -> Option<&mut Slot> {
    slots.get_mut(usize::try_from(index).ok()?)
}

fn is(slots: &[Slot], index: u32, mark: Mark) -> bool {
    usize::try_from(index).ok().and_then(|index| slots.get(index)).is_some_and(|slot| slot.mark == mark)
}

fn hash_of(slots: &[Slot], index: u32) -> u64 {
    usize::try_from(index).ok().and_then(|index| slots.get(index)).map_or(0, |slot| slot.mark.hash)
}
