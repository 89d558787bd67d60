use std::{sync::Arc, time::Duration};

use crate::idempotency::{Claim, ClaimStore, Fenced, Token};

/// A lease that does not end while a test runs.
pub(super) const LONG: Duration = Duration::from_mins(10);
/// A lease to wait for.
pub(super) const SHORT: Duration = Duration::from_millis(50);
/// Long enough for a short lease to have ended by the clock of a database as well.
pub(super) const PAST_SHORT: Duration = Duration::from_millis(150);

/// One key of a store, and what is expected of it.
#[derive(Debug)]
pub(super) struct Probe<'a> {
    store: &'a dyn ClaimStore,
    key: String,
}

impl<'a> Probe<'a> {
    /// A key that nobody has used.
    pub(super) fn fresh(store: &'a Arc<dyn ClaimStore>) -> Self {
        Self::of(store, fresh())
    }

    pub(super) fn of(store: &'a Arc<dyn ClaimStore>, key: String) -> Self {
        Self { store: &**store, key }
    }

    pub(super) async fn claim(&self, token: &Token, lease: Duration, expected: Claim, rule: &str) {
        let answer = self.store.claim(&self.key, token, lease).await;
        assert_eq!(answer, Ok(expected), "{rule} (a claim of {:.60?})", self.key);
    }

    pub(super) async fn confirm(&self, token: &Token, to: Duration, expected: Fenced, rule: &str) {
        let answer = self.store.confirm(&self.key, token, to).await;
        assert_eq!(answer, Ok(expected), "{rule} (a confirm of {:.60?})", self.key);
    }

    pub(super) async fn renew(&self, token: &Token, to: Duration, expected: Fenced, rule: &str) {
        let answer = self.store.renew(&self.key, token, to).await;
        assert_eq!(answer, Ok(expected), "{rule} (a renewal of {:.60?})", self.key);
    }

    pub(super) async fn release(&self, token: &Token, expected: Fenced, rule: &str) {
        let answer = self.store.release(&self.key, token).await;
        assert_eq!(answer, Ok(expected), "{rule} (a release of {:.60?})", self.key);
    }
}

pub(super) fn fresh() -> String {
    uuid::Uuid::new_v4().to_string()
}
