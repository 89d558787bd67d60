use std::{any::Any, fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use uuid::Uuid;

/// Remembers which messages are being handled and which have been.
///
/// A key is free, claimed (for the length of a lease, by the holder of a token) or confirmed (until its retention ends).
/// Each method may be called again with the same key and token after an error: the claim that a lost answer left behind
/// is then recognised as one's own.
///
/// A lease and a retention are at least a millisecond long.
pub trait ClaimStore: Any + fmt::Debug + Send + Sync {
    /// Claims `key` for `lease`, unless somebody holds it or it is confirmed. A lease that has ended is taken over.
    fn claim<'a>(&'a self, key: &'a str, token: &'a Token, lease: Duration)
    -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// Marks `key` as handled for `retention`, if `token` still holds it.
    fn confirm<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>>;

    /// Makes the lease end `lease` from now, if `token` still holds the key.
    fn renew<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        lease: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>>;

    /// Frees `key`, if `token` still holds it and has not confirmed it.
    fn release<'a>(&'a self, key: &'a str, token: &'a Token) -> BoxFuture<'a, Result<Fenced, StoreError>>;

    /// Deletes up to `most` entries whose time has ended, and says how many.
    fn purge(&self, most: usize) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Finds what would make the store useless, such as a missing table, before the first message does.
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Says how many handlers may run at once if each of them holds one of the connections that the store needs too.
    ///
    /// With more, a renewal may wait for a handler to give its connection back, and lose the lease meanwhile. `None` for a
    /// store that shares nothing with the handlers.
    fn concurrency_limit(&self) -> Option<usize> {
        None
    }
}

impl<S: ClaimStore + ?Sized> ClaimStore for Arc<S> {
    fn claim<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        lease: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        (**self).claim(key, token, lease)
    }

    fn confirm<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        (**self).confirm(key, token, retention)
    }

    fn renew<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        lease: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        (**self).renew(key, token, lease)
    }

    fn release<'a>(&'a self, key: &'a str, token: &'a Token) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        (**self).release(key, token)
    }

    fn purge(&self, most: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        (**self).purge(most)
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        (**self).check()
    }

    fn concurrency_limit(&self) -> Option<usize> {
        (**self).concurrency_limit()
    }
}

/// The answer to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Claim {
    /// The message is ours to handle.
    Claimed,
    /// It has been handled: accept it, run nothing.
    Duplicate,
    /// Somebody handles it now: neither run nor accept it.
    InProgress,
}

/// Whether a token still held its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Fenced {
    /// It did, and the change was made.
    Held,
    /// It did not: nothing was changed.
    Lost,
}

/// Names one claim; made anew for every delivery.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Token {
    id: Uuid,
    text: Box<str>,
}

impl Token {
    /// A token that nobody else has: a random UUID in text, 36 bytes.
    #[must_use]
    pub fn random() -> Self {
        // The thread's own generator: asking the system for each delivery would cost more than the claim in memory.
        let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
        let mut text = Uuid::encode_buffer();
        Self { id, text: Box::from(&*id.hyphenated().encode_lower(&mut text)) }
    }

    /// The token's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn id(&self) -> Uuid {
        self.id
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.text)
    }
}

/// Why a store gave no answer. No text holds credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be asked now; the claim may or may not have been made.
    #[error("the claim store cannot be reached: {why}")]
    Unreachable {
        /// The reason.
        why: String,
    },
    /// It will not work until somebody changes its set-up; a claim may have been made before it was refused.
    #[error("the claim store is not usable: {why}")]
    Misconfigured {
        /// What is wrong and what to do.
        why: String,
    },
    /// It holds as many entries as it may and none of them can go.
    #[error("the claim store is full: {cap} entries are live; raise the cap or shorten the retention")]
    Full {
        /// The cap.
        cap: usize,
    },
}

/// The shortest lease or retention: what a store can count in.
const SHORTEST: Duration = Duration::from_millis(1);

/// The longest lease or retention, a century; a longer one counts as that, so that no sum of times overflows.
pub(crate) const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// Refuses a lease or a retention that would have ended when it starts.
pub(super) fn long_enough(what: &str, length: Duration) -> Result<(), StoreError> {
    if length >= SHORTEST {
        return Ok(());
    }
    Err(StoreError::Misconfigured { why: format!("a {what} of {length:?} ends at once; it is at least 1ms") })
}
