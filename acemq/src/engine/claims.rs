//! The claim of one delivery: taken, renewed while the handler runs, confirmed or released.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;

use super::Facts;
use crate::{
    handler::{Ack, Context, panic_text},
    idempotency::{Claim, ClaimStore, Fenced, Scope, StoreError, Token},
    registry::{Idempotent, Scoped},
};

/// How often a store is asked before its silence counts.
const TRIES: u32 = 3;

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(5);

/// How a consumer keeps duplicates out.
#[derive(Debug, Clone)]
pub(crate) struct Claims {
    store: Arc<dyn ClaimStore>,
    settings: Idempotent,
}

/// The claim of one delivery.
#[derive(Debug)]
pub(crate) struct Held {
    claims: Claims,
    key: String,
    token: Token,
}

impl Claims {
    pub(crate) fn new(store: Arc<dyn ClaimStore>, settings: Idempotent) -> Self {
        Self { store, settings }
    }

    pub(crate) fn settings(&self) -> &Idempotent {
        &self.settings
    }

    /// The claim to take for a message, if it has a key; a message whose key cannot be read is unfit.
    pub(crate) fn of(&self, context: &Context, facts: &mut Facts) -> Option<Held> {
        let id = match self.settings.key {
            None => context.envelope().id().map(str::to_owned),
            // It runs code of the user, who may have written a panic.
            Some(key) => match std::panic::catch_unwind(AssertUnwindSafe(|| key(context))) {
                Ok(Ok(key)) => Some(key).filter(|key| !key.is_empty()),
                Ok(Err(error)) => {
                    facts.unfit = Some(Ack::undecodable(&error));
                    None
                }
                Err(payload) => {
                    let text = panic_text(payload);
                    facts.unfit =
                        Some(Ack::poison(format!("the key of the message cannot be read: it panicked: {text}")));
                    None
                }
            },
        }?;
        facts.has_key = true;
        let scope = match self.settings.scope {
            Scoped::Queue => Scope::Queue,
            Scoped::Shared => Scope::Shared,
        };
        Some(Held { key: scope.key(context.queue(), &id), token: Token::random(), claims: self.clone() })
    }
}

impl Held {
    /// Takes the claim; an error is a store that cannot be asked.
    pub(crate) async fn claim(&self) -> Result<Claim, StoreError> {
        let lease = self.claims.settings.claim;
        // One answer at most: a delivery that cannot be claimed goes back and is not in a hurry.
        answered(async { self.claims.store.claim(&self.key, &self.token, lease).await }).await
    }

    /// Marks the message as handled; an error is a store that could not be told in a few tries.
    pub(crate) async fn confirm(&self) -> Result<Fenced, StoreError> {
        let mut tries = 1;
        loop {
            let retention = self.claims.settings.retention;
            match answered(async { self.claims.store.confirm(&self.key, &self.token, retention).await }).await {
                Err(_) if tries < TRIES => {
                    tokio::time::sleep(Duration::from_millis(200) * tries).await;
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }

    /// Frees the key; a store that cannot be told lets the lease end.
    pub(crate) async fn release(&self) {
        if let Err(error) = answered(async { self.claims.store.release(&self.key, &self.token).await }).await {
            tracing::warn!(%error, "a claim could not be released; its lease ends by itself");
        }
    }

    /// Renews the lease for as long as this runs, and ends when it is lost.
    pub(crate) async fn renew_until_lost(&self) {
        let lease = self.claims.settings.claim;
        let mut ends = tokio::time::Instant::now() + lease;
        loop {
            tokio::time::sleep(lease / 3).await;
            match answered(async { self.claims.store.renew(&self.key, &self.token, lease).await }).await {
                Ok(Fenced::Held) => ends = tokio::time::Instant::now() + lease,
                // A store that is away for a moment takes no lease from anybody; one past its end may be taken.
                Err(_) if tokio::time::Instant::now() < ends => {}
                Ok(Fenced::Lost) | Err(_) => return,
            }
        }
    }
}

/// The answer of a store, which may be the user's own: one that panics or says nothing is one that cannot be reached.
async fn answered<T>(asked: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let why = match tokio::time::timeout(ANSWER, AssertUnwindSafe(asked).catch_unwind()).await {
        Ok(Ok(answer)) => return answer,
        Ok(Err(payload)) => format!("it panicked: {}", panic_text(payload)),
        Err(_) => format!("no answer within {ANSWER:?}"),
    };
    Err(StoreError::Unreachable { why })
}
