// Transactions need a store in a database.
#![cfg_attr(not(any(feature = "postgres", feature = "mysql", feature = "sqlite")), allow(dead_code))]

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::future::BoxFuture;

use super::{Claim, ClaimStore, Fenced, StoreError, Token};

/// The claim of the message that a handler is called with.
#[derive(Debug)]
pub(crate) struct Current {
    store: Arc<dyn ClaimStore>,
    key: String,
    token: Token,
    retention: Duration,
    work: OnceLock<Box<dyn Work>>,
}

/// What a handler does in a transaction, which the confirmation joins.
pub(crate) trait Work: fmt::Debug + Send + Sync {
    /// Confirms the claim in the transaction and commits both; a claim that was lost rolls it back.
    ///
    /// After an error, which is a sentence, nobody knows whether it was committed, or it was not.
    fn commit<'a>(&'a self, claim: &'a Current) -> BoxFuture<'a, Result<Fenced, String>>;

    /// Takes everything back.
    fn roll_back(&self) -> BoxFuture<'_, ()>;
}

/// A handler has one transaction already.
#[derive(Debug)]
pub(crate) struct Twice;

impl Current {
    pub(crate) fn new(store: Arc<dyn ClaimStore>, key: String, retention: Duration) -> Self {
        Self { store, key, token: Token::random(), retention, work: OnceLock::new() }
    }

    pub(crate) fn store(&self) -> &dyn ClaimStore {
        &*self.store
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    pub(crate) fn retention(&self) -> Duration {
        self.retention
    }

    /// Has the claim confirmed by the transaction of the handler rather than by the store.
    pub(crate) fn join(&self, work: impl Work + 'static) -> Result<(), Twice> {
        self.work.set(Box::new(work)).map_err(|_| Twice)
    }

    /// What the handler did in a transaction, if it asked for one.
    pub(crate) fn work(&self) -> Option<&dyn Work> {
        self.work.get().map(|work| &**work)
    }

    pub(crate) async fn claim(&self, lease: Duration) -> Result<Claim, StoreError> {
        self.store.claim(&self.key, &self.token, lease).await
    }

    pub(crate) async fn confirm(&self) -> Result<Fenced, StoreError> {
        self.store.confirm(&self.key, &self.token, self.retention).await
    }

    pub(crate) async fn renew(&self, lease: Duration) -> Result<Fenced, StoreError> {
        self.store.renew(&self.key, &self.token, lease).await
    }

    pub(crate) async fn release(&self) -> Result<Fenced, StoreError> {
        self.store.release(&self.key, &self.token).await
    }
}
