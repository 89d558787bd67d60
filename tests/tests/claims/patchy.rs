//! A claim store of which parts can be out of reach.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use acemq::idempotency::{Claim, ClaimStore, Fenced, MemoryStore, StoreError, Token};
use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::sleep;

/// What goes wrong with an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Away,
    /// It is done, and the answer is lost.
    AnswerLost,
    /// It is done, and refused for what came after it.
    Refused,
    /// It is done, and the answer takes its time.
    Slow(Duration),
    /// A claim that fails, and is made after a while all the same.
    Late(Duration),
    /// No answer comes.
    Silent,
    Panics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Claim,
    Confirm,
    Renew,
    Release,
    Purge,
}

/// Claims in memory; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patchy(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    claims: MemoryStore,
    faults: [Mutex<Option<Fault>>; 5],
    asked: [AtomicUsize; 5],
}

impl Patchy {
    pub(crate) fn breaks(&self, op: Op, fault: Fault) {
        *self.0.faults[op as usize].lock().unwrap() = Some(fault);
    }

    pub(crate) fn heals(&self) {
        for fault in &self.0.faults {
            *fault.lock().unwrap() = None;
        }
    }

    fn fault(&self, op: Op) -> Option<Fault> {
        *self.0.faults[op as usize].lock().unwrap()
    }

    /// How often it was asked for this.
    pub(crate) fn asked(&self, op: Op) -> usize {
        self.0.asked[op as usize].load(Ordering::SeqCst)
    }

    /// What is behind the faults.
    pub(crate) fn sound(&self) -> &MemoryStore {
        &self.0.claims
    }

    fn answer<'a, T: Send + 'a>(
        &'a self,
        op: Op,
        sound: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        async move {
            self.0.asked[op as usize].fetch_add(1, Ordering::SeqCst);
            let fault = self.fault(op);
            let lost = Err(StoreError::Unreachable { why: "a fault".to_owned() });
            match fault {
                None => sound.await,
                Some(Fault::Away | Fault::Late(_)) => lost,
                Some(Fault::AnswerLost) => {
                    let _ = sound.await;
                    lost
                }
                Some(Fault::Silent) => std::future::pending().await,
                Some(Fault::Refused) => {
                    let _ = sound.await;
                    Err(StoreError::Misconfigured { why: "a fault".to_owned() })
                }
                Some(Fault::Slow(length)) => {
                    let answer = sound.await;
                    sleep(length).await;
                    answer
                }
                // Without the panic hook, which would print it.
                Some(Fault::Panics) => std::panic::resume_unwind(Box::new("a store that panics")),
            }
        }
        .boxed()
    }
}

impl ClaimStore for Patchy {
    fn claim<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        lease: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        if let Some(Fault::Late(length)) = self.fault(Op::Claim) {
            let (store, key, token) = (self.clone(), key.to_owned(), token.clone());
            tokio::spawn(async move {
                sleep(length).await;
                store.sound().claim(&key, &token, lease).await
            });
        }
        self.answer(Op::Claim, self.0.claims.claim(key, token, lease))
    }

    fn confirm<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.answer(Op::Confirm, self.0.claims.confirm(key, token, retention))
    }

    fn renew<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        lease: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.answer(Op::Renew, self.0.claims.renew(key, token, lease))
    }

    fn release<'a>(&'a self, key: &'a str, token: &'a Token) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.answer(Op::Release, self.0.claims.release(key, token))
    }

    fn purge(&self, most: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.answer(Op::Purge, self.0.claims.purge(most))
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.claims.check()
    }
}
