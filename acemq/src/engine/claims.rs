//! The claim of one delivery: taken, renewed while the handler runs, confirmed or released.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Facts;
use crate::{
    handler::{Ack, Context, panic_text},
    idempotency::{Claim, ClaimStore, Current, Fenced, LONGEST, Scope, StoreError},
    registry::{Idempotent, Scoped},
};

/// How often a store is asked before its silence counts.
const TRIES: u32 = 3;

/// How long one answer may take; the stores of acemq give up earlier, with a better reason.
const ANSWER: Duration = Duration::from_secs(12);

/// How long all tries may take together, as a close waits for them.
const ANSWERS: Duration = Duration::from_secs(15);

/// The pauses before a claim that nobody waits for any more is taken back. What a store does after its caller gave up takes it
/// as long as an answer may, so the last one comes after that.
const FORGETS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(11)];

/// How soon a renewal that failed is tried again at the soonest.
const AGAIN: Duration = Duration::from_secs(1);

/// How a consumer keeps duplicates out.
#[derive(Debug, Clone)]
pub(crate) struct Claims {
    store: Arc<dyn ClaimStore>,
    settings: Idempotent,
}

/// The claim of one delivery.
#[derive(Debug)]
pub(crate) struct Held {
    current: Arc<Current>,
    lease: Duration,
}

/// What became of a confirmation.
#[derive(Debug)]
pub(crate) enum Confirmation {
    /// The store answered.
    Answered(Fenced),
    /// The store could not be told in a few tries.
    Failed(StoreError),
    /// The transaction that it stood in was not committed, or nobody knows.
    NotCommitted(String),
    /// That transaction was rolled back, as somebody else has the claim.
    RolledBack,
}

/// How the renewing of a lease ended or went on.
#[derive(Debug)]
pub(crate) enum Renewal {
    /// The store could not be told; the lease goes on for now.
    Failed(StoreError),
    /// The lease is lost.
    Lost,
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
        let Idempotent { claim, retention, .. } = self.settings;
        let lease = claim.min(LONGEST);
        let current = Current::new(Arc::clone(&self.store), scope.key(context.queue(), &id), retention);
        Some(Held { current: Arc::new(current), lease })
    }
}

impl Held {
    /// The claim, for what the handler asks for.
    pub(crate) fn current(&self) -> &Arc<Current> {
        &self.current
    }

    /// Takes the claim, and sets when its lease began at the latest; an error is a store that cannot be asked.
    pub(crate) async fn claim(&self, since: &mut Instant) -> Result<Claim, StoreError> {
        // Counted from when it was asked for: the answer may take its time.
        *since = Instant::now();
        // One answer at most: a delivery that cannot be claimed goes back and is not in a hurry.
        let mut claimed = answered(ANSWER, self.current.claim(self.lease)).await;
        if claimed == Ok(Claim::Claimed) && since.elapsed() >= self.lease {
            // It has ended on the way, and somebody else may have taken it. A store that is always as slow is no use.
            *since = Instant::now();
            let renewed = answered(ANSWER.min(self.lease), self.current.renew(self.lease)).await;
            claimed = renewed.map(|renewed| match renewed {
                Fenced::Held => Claim::Claimed,
                Fenced::Lost => Claim::InProgress,
            });
        }
        match claimed {
            Ok(_) | Err(StoreError::Full { .. }) => {}
            Err(_) => self.forget(),
        }
        claimed
    }

    /// Takes back a claim that may have been made in spite of the error, or is still to be made: it would keep the message
    /// waiting for the lease.
    fn forget(&self) {
        let current = Arc::clone(&self.current);
        tokio::spawn(async move {
            for pause in FORGETS {
                sleep(pause).await;
                // One that is not there may come yet.
                if let Ok(Fenced::Held) = answered(ANSWER, current.release()).await {
                    return;
                }
            }
        });
    }

    /// Marks the message as handled.
    pub(crate) async fn confirm(&self) -> Confirmation {
        let Some(work) = self.current.work() else {
            let mut answer = Err(StoreError::Unreachable { why: format!("no answer within {ANSWERS:?}") });
            // Whatever came before the end of the time is the better reason.
            let _ = timeout(ANSWERS, self.keep_confirming(&mut answer)).await;
            return answer.map_or_else(Confirmation::Failed, Confirmation::Answered);
        };
        match timeout(ANSWERS, AssertUnwindSafe(work.commit(&self.current)).catch_unwind()).await {
            Ok(Ok(Ok(Fenced::Held))) => Confirmation::Answered(Fenced::Held),
            Ok(Ok(Ok(Fenced::Lost))) => Confirmation::RolledBack,
            Ok(Ok(Err(why))) => Confirmation::NotCommitted(why),
            Ok(Err(payload)) => Confirmation::NotCommitted(format!("the commit panicked: {}", panic_text(payload))),
            Err(_) => Confirmation::NotCommitted(format!("the commit took longer than {ANSWERS:?}")),
        }
    }

    async fn keep_confirming(&self, answer: &mut Result<Fenced, StoreError>) {
        for tried in 1..=TRIES {
            *answer = answered(ANSWER, self.current.confirm()).await;
            if answer.is_ok() || tried == TRIES {
                return;
            }
            sleep(Duration::from_millis(200) * tried).await;
        }
    }

    /// Takes back what the handler did in a transaction, and frees the key; a store that cannot be told lets the lease end.
    pub(crate) async fn release(&self) -> Result<Fenced, StoreError> {
        if let Some(work) = self.current.work() {
            // Before the release, which would wait for what the transaction has locked.
            let _ = timeout(ANSWER, AssertUnwindSafe(work.roll_back()).catch_unwind()).await;
        }
        answered(ANSWER, self.current.release()).await
    }

    /// Renews the lease, which began at `since`, for as long as this runs; ends when it is lost, and reports what happens.
    pub(crate) async fn renew_until_lost(&self, since: Instant, report: impl Fn(Renewal)) {
        let (lease, third) = (self.lease, self.lease / 3);
        let (mut ends, mut next) = (since + lease, since + third);
        loop {
            sleep_until(next).await;
            let asked = Instant::now();
            // Past its end a lease is asked for once: its claim took that long, or a blocked thread let nobody ask before.
            let left = Some(ends.saturating_duration_since(asked)).filter(|left| !left.is_zero());
            let limit = ANSWER.min(third).min(left.unwrap_or(ANSWER));
            match answered(limit, self.current.renew(lease)).await {
                Ok(Fenced::Held) => (ends, next) = (asked + lease, asked + third),
                // A store that is away for a moment takes no lease from anybody; one past its end may be taken.
                Err(error) if Instant::now() < ends => {
                    report(Renewal::Failed(error));
                    let now = Instant::now();
                    // The less time is left, the sooner it is asked again.
                    next = now + ((ends - now) / 2).max(AGAIN.min(third));
                }
                Ok(Fenced::Lost) | Err(_) => break,
            }
            if next >= ends {
                sleep_until(ends).await;
                break;
            }
        }
        report(Renewal::Lost);
    }
}

/// The answer of a store, which may be the user's own: one that panics or says nothing is one that cannot be reached.
pub(crate) async fn answered<T>(
    limit: Duration,
    asked: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let why = match timeout(limit, AssertUnwindSafe(asked).catch_unwind()).await {
        Ok(Ok(answer)) => return answer,
        Ok(Err(payload)) => format!("it panicked: {}", panic_text(payload)),
        Err(_) => format!("no answer within {limit:?}"),
    };
    Err(StoreError::Unreachable { why })
}
