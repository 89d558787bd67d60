//! The claim stores of an application: which there are, whether they will do, and what keeps them small.

use std::{any::Any, collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::join_all;

use super::{App, running::Services};
use crate::{
    engine::{Claims, answered},
    handler::Requirements,
    idempotency::{ClaimStore, MemoryStore, StoreError},
    registry::{Idempotent, Registration},
};

/// How often what has ended is deleted from a store, unless the application says otherwise.
pub(super) const PURGE_EVERY: Duration = Duration::from_mins(1);

/// How many entries are deleted before others get their turn; a store deletes them in smaller parts.
const PURGED_AT_ONCE: usize = 5_000;

/// How long a purge may take before it is given up until the next time.
const PURGE_LIMIT: Duration = Duration::from_mins(1);

/// How long the look at a store may take at the start.
const CHECK_LIMIT: Duration = Duration::from_secs(15);

/// The stores that consumers use, and what each of them asks for.
#[derive(Debug, Default)]
pub(super) struct Stores {
    default: Option<Arc<dyn ClaimStore>>,
    named: BTreeMap<&'static str, Arc<dyn ClaimStore>>,
    used: Vec<Used>,
}

#[derive(Debug)]
struct Used {
    store: Arc<dyn ClaimStore>,
    name: Option<&'static str>,
    /// How many handlers may run at once.
    handlers: usize,
}

impl Used {
    fn label(&self) -> String {
        self.name.map_or_else(|| "the claim store".to_owned(), |name| format!("the claim store `{name}`"))
    }
}

impl Stores {
    /// Gives each consumer its store, and finds what can be known to be wrong before any of them is asked.
    pub(super) fn of(app: &App, consumers: &[Registration], problems: &mut Vec<String>) -> (Self, Vec<Option<Claims>>) {
        let mut stores = Self { default: app.default_store.clone(), named: app.stores.clone(), ..Self::default() };
        let claims = consumers.iter().map(|consumer| stores.claims(consumer, problems)).collect();
        for used in &stores.used {
            problems.extend(too_many_handlers(used));
        }
        (stores, claims)
    }

    fn claims(&mut self, consumer: &Registration, problems: &mut Vec<String>) -> Option<Claims> {
        let store = match consumer.spec.idempotent {
            Some(settings) => Some((self.give(consumer, &settings, problems)?, settings)),
            None => None,
        };
        let mut requirements = Requirements::default();
        (consumer.requires)(&mut requirements);
        for check in requirements.store_checks() {
            if let Err(why) = check(store.as_ref().map(|(store, _)| &**store as &dyn Any)) {
                problems.push(format!("consumer `{}`: {why}", consumer.name));
            }
        }
        store.map(|(store, settings)| Claims::new(store, settings))
    }

    fn give(
        &mut self,
        consumer: &Registration,
        settings: &Idempotent,
        problems: &mut Vec<String>,
    ) -> Option<Arc<dyn ClaimStore>> {
        let store = if let Some(name) = settings.store {
            let Some(store) = self.named.get(name) else {
                problems.push(format!(
                    "consumer `{}` keeps its claims in store `{name}`, which nobody provides: add \
                     `App::idempotency_named(\"{name}\", …)`",
                    consumer.name
                ));
                return None;
            };
            Arc::clone(store)
        } else {
            Arc::clone(self.default.get_or_insert_with(|| {
                tracing::warn!(
                    "claims are kept in memory: duplicates that another process or an earlier run of this one has handled \
                     are not recognised; give the application a store with `App::idempotency`"
                );
                Arc::new(MemoryStore::new())
            }))
        };
        let handlers = usize::from(consumer.spec.concurrency.min(consumer.spec.prefetch));
        match self.used.iter_mut().find(|used| Arc::ptr_eq(&used.store, &store)) {
            Some(used) => used.handlers += handlers,
            None => self.used.push(Used { store: Arc::clone(&store), name: settings.store, handlers }),
        }
        Some(store)
    }

    /// Asks every store whether it can do its work.
    pub(super) async fn check(&self) -> Result<(), Vec<String>> {
        let checks = self.used.iter().map(async |used| match answered(CHECK_LIMIT, used.store.check()).await {
            Ok(()) => None,
            // Its sentence begins with the store.
            Err(StoreError::Misconfigured { why }) => Some(format!("{} is not usable: {why}", used.label())),
            Err(StoreError::Unreachable { why }) => Some(format!("{} cannot be used now: {why}", used.label())),
            Err(error) => Some(format!("{}: {error}", used.label())),
        });
        let problems: Vec<String> = join_all(checks).await.into_iter().flatten().collect();
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Deletes what has ended from every store from time to time, until the services end.
    pub(super) fn purge(self, every: Duration, services: &Services) {
        for used in self.used {
            let end = services.end.clone();
            services.tasks.spawn(async move {
                tokio::select! {
                    biased;
                    () = end.cancelled() => {}
                    () = keep_purging(&used, every) => {}
                }
            });
        }
    }
}

async fn keep_purging(used: &Used, every: Duration) {
    let mut failing = false;
    loop {
        // Processes that were started together do not go on together.
        tokio::time::sleep(every.mul_f64(rand::random_range(0.75..=1.25))).await;
        loop {
            match answered(PURGE_LIMIT, used.store.purge(PURGED_AT_ONCE)).await {
                Ok(purged) => {
                    failing = false;
                    if purged > 0 {
                        tracing::debug!(store = used.label(), purged, "ended claims are deleted");
                    }
                    if purged < PURGED_AT_ONCE {
                        break;
                    }
                }
                Err(error) => {
                    // Said once: a store that is away says so at each claim, too.
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(store = used.label(), %error, "ended claims could not be deleted; trying again");
                    }
                    break;
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

fn too_many_handlers(used: &Used) -> Option<String> {
    let limit = used.store.concurrency_limit().filter(|limit| used.handlers > *limit)?;
    Some(format!(
        "{} shares its pool of {} connections with the handlers, of which {} may run at once: if each holds one, no claim \
         can be made or renewed; give the pool {} connections or more, lower `concurrency`, give the store connections of \
         its own (as `SqlStore::connect_postgres` does), or say that handlers use others with `SqlStore::pool_to_itself`",
        used.label(),
        limit + 1,
        used.handlers,
        used.handlers + 1,
    ))
}
