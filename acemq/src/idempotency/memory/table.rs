use super::entry::{Entry, Mark};

/// Entries by the hashes of their keys.
///
/// Each lies at the place that its hash names, or at the next free one. A look touches one line of the processor's cache,
/// mostly: in a table of millions, where every line comes from memory, one line more (as for the control bytes of the
/// standard library's map) makes claims a third slower.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// A power of two of them, and never all taken.
    slots: Box<[Option<Entry>]>,
    len: usize,
}

/// How many slots a table has at first.
const SMALLEST: usize = 16;

impl Table {
    pub(super) fn get_mut(&mut self, mark: Mark) -> Option<&mut Entry> {
        let at = self.find(mark.hash, |entry| entry.mark == mark)?;
        self.slots.get_mut(at)?.as_mut()
    }

    /// Adds an entry whose key has none.
    pub(super) fn insert(&mut self, entry: Entry) {
        // With five eighths taken, one that is missing is known after four slots on average.
        if (self.len + 1) * 8 > self.slots.len() * 5 {
            self.grow();
        }
        self.put(entry);
        self.len += 1;
    }

    /// Says whether there is an entry of this hash that `is_it`.
    pub(super) fn contains(&self, hash: u64, is_it: impl Fn(&Entry) -> bool) -> bool {
        self.find(hash, is_it).is_some()
    }

    /// Removes the entry of this hash that `is_it`, and says whether there was one.
    pub(super) fn remove(&mut self, hash: u64, is_it: impl Fn(&Entry) -> bool) -> bool {
        let found = self.find(hash, is_it);
        if let Some(at) = found {
            self.clear(at);
        }
        found.is_some()
    }

    /// Removes the entries that do not stay.
    ///
    /// It may ask twice about one that stays.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(&Entry) -> bool) {
        for at in 0..self.slots.len() {
            // Another may have moved to where one was.
            while self.entry(at).is_some_and(|entry| !stays(entry)) {
                self.clear(at);
            }
        }
    }

    fn entry(&self, at: usize) -> Option<&Entry> {
        self.slots.get(at)?.as_ref()
    }

    fn find(&self, hash: u64, is_it: impl Fn(&Entry) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        loop {
            if is_it(self.entry(at)?) {
                return Some(at);
            }
            at = self.after(at);
        }
    }

    fn home(&self, hash: u64) -> usize {
        // The other bits are for tables that are too large for memory.
        self.around(usize::try_from(hash & u64::from(u32::MAX)).unwrap_or(0))
    }

    fn after(&self, at: usize) -> usize {
        self.around(at.wrapping_add(1))
    }

    /// How far `to` lies behind `from`, around the end of the table.
    fn distance(&self, from: usize, to: usize) -> usize {
        self.around(to.wrapping_sub(from))
    }

    fn around(&self, at: usize) -> usize {
        at & self.slots.len().wrapping_sub(1)
    }

    fn put(&mut self, entry: Entry) {
        let mut at = self.home(entry.mark.hash);
        while self.entry(at).is_some() {
            at = self.after(at);
        }
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Some(entry);
        }
    }

    fn take(&mut self, at: usize) -> Option<Entry> {
        self.slots.get_mut(at)?.take()
    }

    /// Empties a slot, and moves those behind it up that would not be found across the gap.
    fn clear(&mut self, at: usize) {
        self.take(at);
        self.len -= 1;
        let (mut gap, mut next) = (at, self.after(at));
        while let Some(entry) = self.entry(next) {
            let home = self.home(entry.mark.hash);
            if self.distance(home, next) >= self.distance(gap, next) {
                self.slots.swap(gap, next);
                gap = next;
            }
            next = self.after(next);
        }
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(SMALLEST);
        let slots = std::iter::repeat_with(|| None).take(size).collect();
        let before = std::mem::replace(&mut self.slots, slots);
        for entry in before.into_iter().flatten() {
            self.put(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::idempotency::memory::entry::{Ends, Holder};

    fn entry(hash: u64, check: u64) -> Entry {
        Entry { mark: Mark { hash, check }, holder: Holder::from(uuid::Uuid::nil()), ends: Ends::of_lease(check + 1) }
    }

    proptest! {
        /// Few homes, among them the last slots of the table, so that entries lie in each other's places and around the end.
        #[test]
        fn it_holds_what_a_map_holds(
            steps in proptest::collection::vec((0..3_u8, prop_oneof![0..4_u64, 12..16_u64, 60..64_u64], 0..6_u64), 1..300),
        ) {
            let (mut table, mut map) = (Table::default(), HashMap::new());
            for (step, hash, check) in steps {
                let mark = Mark { hash, check };
                match step {
                    0 => {
                        if map.insert((hash, check), ()).is_none() {
                            table.insert(entry(hash, check));
                        }
                    }
                    1 => {
                        let was_there = map.remove(&(hash, check)).is_some();
                        prop_assert_eq!(table.remove(hash, |entry| entry.mark == mark), was_there);
                    }
                    _ => {
                        table.retain(|entry| entry.mark.check != check);
                        map.retain(|(_, other), ()| *other != check);
                    }
                }
                prop_assert_eq!(table.len, map.len());
                for hash in 0..64 {
                    for check in 0..6 {
                        let is_there = table.get_mut(Mark { hash, check }).is_some();
                        prop_assert_eq!(is_there, map.contains_key(&(hash, check)));
                    }
                }
            }
        }
    }

    #[test]
    fn an_entry_is_half_a_line_and_so_is_its_slot() {
        assert_eq!(size_of::<Option<Entry>>(), 32);
        assert_eq!(align_of::<Option<Entry>>(), 32);
    }
}
