use std::{
    any::Any,
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use futures_util::future::{BoxFuture, FutureExt as _};
use sqlx::{Database, Transaction};
use tokio::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};

use super::{
    SqlStore,
    backend::{Backend, Dialect},
    error::Failure,
    op::Item,
    store::{Inner, millis},
};
use crate::{
    handler::{Context, ExtractError, FromContext, Requirements},
    idempotency::{Current, Fenced, StoreError, Token, Twice, Work, key::fit},
};

/// A transaction in which the writes of a handler and the confirmation of its message commit together.
///
/// It is an argument of a consumer that is `idempotent` and whose claims are in a table of the same database. When the
/// handler accepts the message, the message is marked as handled in the transaction, and both are committed; when it fails
/// in whatever way, they are rolled back. So within this database a message has its effect at most once for as long as its
/// confirmation is remembered, even if the process dies in the handler, or before it could acknowledge the message.
///
/// - The commit comes after the handler has returned. If it fails, so has the handler: the message is tried again.
/// - If the claim was lost, because the lease ended and somebody else took the message over, the writes are rolled back.
/// - The transaction holds a connection for as long as the handler runs. In SQLite it also is the one that may write, so
///   handlers run one after the other there, and no claim is renewed meanwhile: they have to be shorter than the lease.
/// - What the handler does elsewhere, such as a publish or a call of another service, is not part of it.
///
/// # Examples
/// ```
/// # #[cfg(feature = "sqlite")] mod example {
/// use acemq::{consumer, idempotency::sql::Tx};
/// use sqlx::Sqlite;
///
/// #[derive(serde::Deserialize)]
/// struct Deposit { account: i64, cents: i64 }
///
/// #[consumer(queue = "deposits", idempotent)]
/// async fn deposit(deposit: Deposit, mut tx: Tx<Sqlite>) -> Result<(), sqlx::Error> {
///     sqlx::query("UPDATE accounts SET cents = cents + ? WHERE id = ?")
///         .bind(deposit.cents)
///         .bind(deposit.account)
///         .execute(&mut *tx)
///         .await?;
///     Ok(())
/// }
/// # }
/// ```
pub struct Tx<D: Database> {
    open: OwnedMappedMutexGuard<Option<Transaction<'static, D>>, Transaction<'static, D>>,
}

impl<D: Database> Deref for Tx<D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        &self.open
    }
}

impl<D: Database> DerefMut for Tx<D> {
    fn deref_mut(&mut self) -> &mut D::Connection {
        &mut self.open
    }
}

impl<D: Database> fmt::Debug for Tx<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("database", &D::NAME).finish_non_exhaustive()
    }
}

impl<D: Dialect> FromContext for Tx<D> {
    async fn from_context(context: &Context) -> Result<Self, ExtractError> {
        let Some(current) = context.own::<Current>() else {
            let why =
                "the message has no id, so no confirmation could join the transaction: take `no_id = park` or a `key`";
            return Err(ExtractError::fatal(why));
        };
        let store = store::<D>(Some(current.store())).map_err(ExtractError::fatal)?;
        let Some(pool) = store.inner().handlers() else {
            return Err(ExtractError::fatal(NO_POOL));
        };
        // Asked before a second one is begun, which in SQLite would wait for the first.
        if current.work().is_some() {
            return Err(ExtractError::fatal(TWICE));
        }
        let begun = store.inner().within_limit(async { D::begin(pool).await.map_err(|error| D::judge(&error)) }).await;
        let transaction = begun.map_err(|failure| ExtractError::unavailable(store.inner().failed(failure)))?;
        let slot = Arc::new(Mutex::new(Some(transaction)));
        let work = Handled { store: Arc::clone(store.inner()), slot: Arc::clone(&slot) };
        current.join(work).map_err(|Twice| ExtractError::fatal(TWICE))?;
        let open = OwnedMutexGuard::try_map(slot.lock_owned().await, Option::as_mut);
        open.map(|open| Self { open }).map_err(|_| ExtractError::new("the transaction has ended"))
    }

    fn requires(requirements: &mut Requirements) {
        requirements.claim_store(|given| match store::<D>(given)?.inner().handlers() {
            Some(_) => Ok(()),
            None => Err(NO_POOL.to_owned()),
        });
    }
}

const NO_POOL: &str = "it takes a `Tx`, and the connections of its claim store are for claims only: name the pool of the \
                       handlers with `SqlStore::transactions(pool)`";

const TWICE: &str = "a handler takes one `Tx`, and this one takes two";

/// The store of this database, or what is wrong with the one that there is.
fn store<D: Dialect>(given: Option<&dyn Any>) -> Result<&SqlStore<D>, String> {
    let given = given.ok_or_else(|| format!("it takes a `Tx<{}>` and is not `idempotent`", D::NAME))?;
    let shared = || given.downcast_ref::<Arc<SqlStore<D>>>().map(|store| &**store);
    given.downcast_ref().or_else(shared).ok_or_else(|| {
        format!(
            "it takes a `Tx<{name}>`, and its claims are not kept in {name}: give it such a `SqlStore`",
            name = D::NAME
        )
    })
}

/// The transaction of a handler, for the time after it.
struct Handled<D: Backend> {
    store: Arc<Inner<D>>,
    /// Locked while the handler has it.
    slot: Arc<Mutex<Option<Transaction<'static, D>>>>,
}

impl<D: Backend> fmt::Debug for Handled<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handled").field("store", &self.store).finish_non_exhaustive()
    }
}

impl<D: Dialect> Work for Handled<D> {
    fn commit<'a>(&'a self, claim: &'a Current) -> BoxFuture<'a, Result<Fenced, String>> {
        async move {
            let Some(mut transaction) = self.slot.try_lock().ok().and_then(|mut slot| slot.take()) else {
                return Err("something that the handler has started still uses its transaction".to_owned());
            };
            let confirmed =
                self.store.confirm_in(&mut transaction, claim.key(), claim.token(), claim.retention()).await;
            match confirmed {
                Ok(Fenced::Held) => {
                    let committed = transaction.commit().await.map_err(|error| D::judge(&error));
                    committed.map(|()| Fenced::Held).map_err(|failure| self.store.failed(failure).to_string())
                }
                Ok(Fenced::Lost) => {
                    // It is rolled back in any case, when its connection goes back to the pool.
                    let _ = transaction.rollback().await;
                    Ok(Fenced::Lost)
                }
                Err(error) => {
                    let _ = transaction.rollback().await;
                    Err(error.to_string())
                }
            }
        }
        .boxed()
    }

    fn roll_back(&self) -> BoxFuture<'_, ()> {
        async move {
            let transaction = self.slot.try_lock().ok().and_then(|mut slot| slot.take());
            if let Some(transaction) = transaction {
                let _ = transaction.rollback().await;
            }
        }
        .boxed()
    }
}

impl<D: Dialect> SqlStore<D> {
    /// Confirms `key` as part of `transaction`, so that it counts as handled if and only if the transaction commits; a
    /// handler takes a [`Tx`] instead.
    ///
    /// It is meant to be the last statement before the commit, as the entry stays locked until then. On [`Fenced::Lost`]
    /// somebody else may handle the message: roll back.
    ///
    /// # Errors
    ///
    /// When the database does not answer or refuses; the transaction is then only good for rolling back.
    pub async fn confirm_in(
        &self,
        transaction: &mut Transaction<'_, D>,
        key: &str,
        token: &Token,
        retention: Duration,
    ) -> Result<Fenced, StoreError> {
        self.inner().confirm_in(transaction, key, token, retention).await
    }
}

impl<D: Backend> Inner<D> {
    async fn confirm_in(
        &self,
        transaction: &mut Transaction<'_, D>,
        key: &str,
        token: &Token,
        retention: Duration,
    ) -> Result<Fenced, StoreError> {
        let millis = millis("retention", retention)?;
        let key = fit(key);
        let item = Item { key: &key, token: token.as_str() };
        let confirmed = D::confirm_in(&self.sql, &mut **transaction, item, millis).await;
        confirmed.map(Fenced::from).map_err(|failure: Failure| self.failed(failure))
    }
}
