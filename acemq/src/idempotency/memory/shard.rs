use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::{HashTable, hash_table::OccupiedEntry};

use super::{
    entry::{Ends, Entry, Holder, Mark},
    timers::{Due, Timers},
};
use crate::idempotency::{Claim, Fenced};

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

    fn give(&self, count: usize) {
        self.taken.fetch_sub(count, Ordering::Relaxed);
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

/// The entries whose keys have the same few bits in their hashes.
#[derive(Debug)]
pub(super) struct Shard {
    entries: HashTable<Entry>,
    retentions: Timers,
    /// No lease ends before this; so nobody looks through the entries for one without need.
    leases_last_until: u64,
}

impl Default for Shard {
    fn default() -> Self {
        Self { entries: HashTable::new(), retentions: Timers::default(), leases_last_until: u64::MAX }
    }
}

impl Shard {
    pub(super) fn claim(&mut self, mark: Mark, holder: Holder, lease: Span, room: &Room) -> Result<Claim, NoRoom> {
        // A claim whose lease has ended stays: until somebody takes it over its holder may still confirm it.
        self.end_some_retentions(lease.now, room);
        let ends = Ends::of_lease(lease.end());
        match self.entries.find_mut(mark.hash, is_for(mark)) {
            None if !room.take() => return Err(NoRoom),
            None => {
                self.entries.insert_unique(mark.hash, Entry { mark, holder, ends }, |entry| entry.mark.hash);
            }
            Some(entry) => {
                if entry.ends.at() > lease.now {
                    if entry.ends.is_retention() {
                        return Ok(Claim::Duplicate);
                    }
                    if entry.holder != holder {
                        return Ok(Claim::InProgress);
                    }
                }
                entry.holder = holder;
                entry.ends = ends;
            }
        }
        self.leases_last_until = self.leases_last_until.min(ends.at());
        Ok(Claim::Claimed)
    }

    pub(super) fn confirm(&mut self, mark: Mark, holder: Holder, retention: Span) -> Fenced {
        let Some(entry) = self.entries.find_mut(mark.hash, is_for(mark)).filter(|entry| entry.holder == holder) else {
            return Fenced::Lost;
        };
        entry.ends = Ends::of_retention(retention.end());
        let due = Due { at: entry.ends.at(), hash: mark.hash };
        self.retentions.push(retention.ahead, due);
        Fenced::Held
    }

    pub(super) fn renew(&mut self, mark: Mark, holder: Holder, lease: Span) -> Fenced {
        let Some(entry) = self.entries.find_mut(mark.hash, is_for(mark)).filter(|entry| entry.is_claimed_by(holder))
        else {
            return Fenced::Lost;
        };
        entry.ends = Ends::of_lease(lease.end());
        self.leases_last_until = self.leases_last_until.min(lease.end());
        Fenced::Held
    }

    pub(super) fn release(&mut self, mark: Mark, holder: Holder, room: &Room) -> Fenced {
        if self.remove(mark.hash, |entry| entry.mark == mark && entry.is_claimed_by(holder)) {
            room.give(1);
            return Fenced::Held;
        }
        Fenced::Lost
    }

    /// Removes up to `most` entries whose time has ended.
    pub(super) fn purge(&mut self, now: u64, most: usize, room: &Room) -> usize {
        let removed = self.end_retentions(now, most, room);
        removed + self.end_leases(now, most - removed, room)
    }

    fn end_leases(&mut self, now: u64, most: usize, room: &Room) -> usize {
        if most == 0 || self.leases_last_until > now {
            return 0;
        }
        let mut removed = 0;
        let mut last_until = u64::MAX;
        self.entries.retain(|entry| {
            if entry.ends.is_retention() {
                return true;
            }
            let goes = entry.ends.at() <= now && removed < most;
            if goes {
                removed += 1;
            } else {
                last_until = last_until.min(entry.ends.at());
            }
            !goes
        });
        self.leases_last_until = last_until;
        room.give(removed);
        removed
    }

    /// Removes a few entries whose retention has ended: enough of them, with each claim, for none to pile up.
    fn end_some_retentions(&mut self, now: u64, room: &Room) {
        let mut removed = usize::from(self.retentions.pop_other(now).is_some_and(|due| self.end(due)));
        if let Some(batch) = self.retentions.take_batch(now)
            // What is only looked at comes from memory all at the same time; what is changed is waited for, one by one.
            && batch.iter().filter(|due| self.entries.find(due.hash, is_of(**due)).is_some()).count() > 0
        {
            removed += batch.into_iter().filter(|due| self.end(*due)).count();
        }
        if removed > 0 {
            room.give(removed);
        }
    }

    fn end_retentions(&mut self, now: u64, most: usize, room: &Room) -> usize {
        let mut removed = 0;
        while removed < most
            && let Some(due) = self.retentions.pop_ended(now)
        {
            removed += usize::from(self.end(due));
        }
        room.give(removed);
        removed
    }

    /// Removes the confirmed entry whose retention ends first, and says whether there was one.
    pub(super) fn forget(&mut self, room: &Room) -> bool {
        while let Some(due) = self.retentions.pop_earliest() {
            if self.end(due) {
                room.give(1);
                return true;
            }
        }
        false
    }

    /// Removes the entry that `due` is about, and says whether it was still there.
    fn end(&mut self, due: Due) -> bool {
        self.remove(due.hash, is_of(due))
    }

    /// Removes the entry of this hash that `is_it`, and says whether there was one.
    fn remove(&mut self, hash: u64, is_it: impl FnMut(&Entry) -> bool) -> bool {
        self.entries.find_entry(hash, is_it).map(OccupiedEntry::remove).is_ok()
    }

    #[cfg(test)]
    pub(super) fn ends(&self) -> usize {
        self.retentions.len()
    }
}

fn is_for(mark: Mark) -> impl Fn(&Entry) -> bool {
    move |entry| entry.mark == mark
}

/// Whether an entry is the one that `due` is about, with the same retention still.
fn is_of(due: Due) -> impl Fn(&Entry) -> bool {
    let ends = Ends::of_retention(due.at);
    move |entry| entry.mark.hash == due.hash && entry.ends == ends
}
