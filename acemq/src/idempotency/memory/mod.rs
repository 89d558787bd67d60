mod entry;
mod shard;
#[cfg(test)]
mod tests;
mod timers;

use std::{
    fmt,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use tokio::time::Instant;

use self::{
    entry::Mark,
    shard::{Room, Shard, Span},
};
use super::{Claim, ClaimStore, Fenced, StoreError, Token, store::long_enough};

/// How many locks the entries are spread over.
const SHARDS: usize = 64;

/// How many entries there may be unless [`MemoryStore::with_cap`] says otherwise.
const CAP: usize = 100_000;

/// Claims in the memory of this process.
///
/// It covers what reaches this process twice: a redelivery, a message that was published twice. It does not cover other
/// processes, nor this one after a restart: for these, use a store in a database.
///
/// When it is full, it forgets confirmed messages before their time, of a small part of them the one whose retention would
/// end first, and warns about it once; a claim that somebody holds is never forgotten.
/// [`MemoryStore::refuse_when_full`] makes it refuse claims instead.
///
/// Time is tokio's, so that a test may pause it.
pub struct MemoryStore {
    shards: Box<[Mutex<Shard>; SHARDS]>,
    hasher: RandomState,
    room: Room,
    start: Instant,
    forgets: bool,
    warned: AtomicBool,
}

impl MemoryStore {
    /// A store for 100,000 entries.
    #[must_use]
    pub fn new() -> Self {
        Self::with_cap(CAP)
    }

    /// A store for `cap` entries; each takes some 80 bytes, however long its key is.
    #[must_use]
    pub fn with_cap(cap: usize) -> Self {
        Self {
            shards: Box::new(std::array::from_fn(|_| Mutex::default())),
            hasher: RandomState::new(),
            room: Room { cap, taken: AtomicUsize::new(0) },
            start: Instant::now(),
            forgets: true,
            warned: AtomicBool::new(false),
        }
    }

    /// Refuses claims with [`StoreError::Full`] when full, rather than to forget a confirmed message before its time.
    #[must_use]
    pub fn refuse_when_full(mut self) -> Self {
        self.forgets = false;
        self
    }

    /// Says how many entries there are, ended ones that nobody has removed yet included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.room.taken.load(Ordering::Relaxed)
    }

    /// Says whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn try_claim(&self, key: &str, token: &Token, lease: Duration) -> Result<Claim, StoreError> {
        long_enough("lease", lease)?;
        let mark = self.mark(key);
        loop {
            let lease = self.span(lease);
            let answer = self.shard(mark.hash).claim(mark, token.id().into(), lease, &self.room);
            if let Ok(claim) = answer {
                return Ok(claim);
            }
            // Others may take the room that this makes; each turn that finds none has seen the store full of claims.
            if !self.make_room(mark.hash, lease.now) {
                return Err(StoreError::Full { cap: self.room.cap });
            }
        }
    }

    fn make_room(&self, hash: u64, now: u64) -> bool {
        let from = index(hash);
        let mut order = self.shards.iter().cycle().skip(from).take(SHARDS);
        if order.any(|shard| lock(shard).purge(now, 64, &self.room) > 0) {
            return true;
        }
        if !self.forgets {
            return false;
        }
        let mut order = self.shards.iter().cycle().skip(from).take(SHARDS);
        let forgot = order.any(|shard| lock(shard).forget(&self.room));
        if forgot && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                cap = self.room.cap,
                "the claim store in memory is full: it forgets confirmed messages before their retention ends; \
                 raise the cap or shorten the retention"
            );
        }
        forgot
    }

    fn mark(&self, key: &str) -> Mark {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key.as_bytes());
        let hash = hasher.finish();
        // Reading on from where it is: two keys that agree so far still differ inside.
        hasher.write_u8(0);
        Mark { hash, check: hasher.finish() }
    }

    fn fenced(&self, key: &str, change: impl FnOnce(&mut Shard, Mark) -> Fenced) -> Fenced {
        let mark = self.mark(key);
        change(&mut self.shard(mark.hash), mark)
    }

    fn span(&self, ahead: Duration) -> Span {
        Span { now: nanos(self.start.elapsed()), ahead: nanos(ahead) }
    }

    #[expect(clippy::indexing_slicing, reason = "an index is a remainder of the length")]
    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        lock(&self.shards[index(hash)])
    }
}

/// Takes bits of the hash that the shard's own table does not look at.
fn index(hash: u64) -> usize {
    usize::try_from(hash >> 40).unwrap_or(0) % SHARDS
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("cap", &self.room.cap).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl ClaimStore for MemoryStore {
    fn claim<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        lease: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        async move { self.try_claim(key, token, lease) }.boxed()
    }

    fn confirm<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        async move {
            long_enough("retention", retention)?;
            let to = self.span(retention);
            Ok(self.fenced(key, |shard, mark| shard.confirm(mark, token.id().into(), to)))
        }
        .boxed()
    }

    fn renew<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        lease: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        async move {
            long_enough("lease", lease)?;
            let lease = self.span(lease);
            Ok(self.fenced(key, |shard, mark| shard.renew(mark, token.id().into(), lease)))
        }
        .boxed()
    }

    fn release<'a>(&'a self, key: &'a str, token: &'a Token) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        async move { Ok(self.fenced(key, |shard, mark| shard.release(mark, token.id().into(), &self.room))) }.boxed()
    }

    fn purge(&self, most: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        async move {
            let now = self.span(Duration::ZERO).now;
            let mut removed = 0;
            for shard in self.shards.iter() {
                removed += lock(shard).purge(now, most - removed, &self.room);
            }
            Ok(removed)
        }
        .boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        ready(Ok(())).boxed()
    }
}
