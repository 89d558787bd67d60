//! A claim store that outlives the applications of a run, and can be out of reach.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use acemq::idempotency::{Claim, ClaimStore, Fenced, MemoryStore, StoreError, Token};
use futures_util::{FutureExt, future::BoxFuture};

#[derive(Debug, Clone, Default)]
pub(crate) struct Store(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    claims: MemoryStore,
    away: AtomicBool,
}

impl Store {
    /// Out of reach for everything but confirms, whose loss makes duplicates.
    pub(crate) fn be_away(&self, away: bool) {
        self.0.away.store(away, Ordering::SeqCst);
    }

    fn reach(&self) -> Result<&MemoryStore, StoreError> {
        if self.0.away.load(Ordering::SeqCst) {
            Err(StoreError::Unreachable { why: "a fault".to_owned() })
        } else {
            Ok(&self.0.claims)
        }
    }
}

impl ClaimStore for Store {
    fn claim<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        lease: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        async move { self.reach()?.claim(key, token, lease).await }.boxed()
    }

    fn confirm<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.0.claims.confirm(key, token, retention)
    }

    fn renew<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        lease: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        async move { self.reach()?.renew(key, token, lease).await }.boxed()
    }

    fn release<'a>(&'a self, key: &'a str, token: &'a Token) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        async move { self.reach()?.release(key, token).await }.boxed()
    }

    fn purge(&self, most: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.0.claims.purge(most)
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.claims.check()
    }
}
