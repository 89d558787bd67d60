use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt as _};
use sqlx::Pool;

use super::{
    backend::{Backend, Dialect, Extensions},
    error::Failure,
    lanes::{Lane, Lanes},
    op::{Kind, Op, Verdict},
    table::Table,
};
use crate::idempotency::{
    Claim, ClaimStore, Fenced, StoreError, Token,
    key::fit,
    store::{LONGEST, long_enough},
};

/// How long an answer may take in all, with the wait for statements of others and for a connection, and with all tries.
///
/// A consumer gives up a little later.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Claims in a table that many processes share.
///
/// A store is made by one of its constructors, such as `SqlStore::postgres(pool)`; the feature of its database has to be
/// on. The table is created by whoever looks after the database, with the statement that
/// [`create_table_sql`](Self::create_table_sql) hands out; [`check`](ClaimStore::check) says what is wrong with it.
///
/// What is asked for at the same time goes to the database in one statement; what is asked for alone does not wait for
/// company. Times are the database's: clocks of clients do not matter.
///
/// A pool belongs to the runtime that its connections were opened on, and so does the store.
pub struct SqlStore<D: Dialect> {
    inner: Arc<Inner<D>>,
}

/// What the callers and the tasks of a store share.
pub struct Inner<D: Backend> {
    pub(super) settings: Settings<D>,
    pub(super) sql: D::Sql,
    lanes: Lanes,
}

/// What a store was given.
pub(super) struct Settings<D: Backend> {
    pub(super) pool: Pool<D>,
    pub(super) table: Table,
    pub(super) timeout: Duration,
    pub(super) extensions: Extensions,
    /// Where the transactions of handlers come from; no pool if that of the store serves nothing else.
    handlers: Option<Pool<D>>,
    /// Whether handlers may hold the connections that the store needs.
    crowded: bool,
}

impl<D: Dialect> SqlStore<D> {
    pub(super) fn shared(pool: Pool<D>) -> Self {
        let handlers = Some(pool.clone());
        Self::build(Settings { handlers, crowded: true, ..Settings::of(pool) })
    }

    pub(super) fn own(pool: Pool<D>) -> Self {
        Self::build(Settings::of(pool))
    }

    fn build(settings: Settings<D>) -> Self {
        let sql = D::sql(&settings.table, settings.extensions);
        Self { inner: Arc::new(Inner { settings, sql, lanes: Lanes::default() }) }
    }

    /// The store with a change of its settings, and with all the others.
    pub(super) fn with(self, change: impl FnOnce(&mut Settings<D>)) -> Self {
        let Settings { pool, table, timeout, extensions, handlers, crowded } = &self.inner.settings;
        let mut settings = Settings {
            pool: pool.clone(),
            table: table.clone(),
            timeout: *timeout,
            extensions: *extensions,
            handlers: handlers.clone(),
            crowded: *crowded,
        };
        change(&mut settings);
        Self::build(settings)
    }

    /// Uses the table `name`, or `schema.name`, rather than `acemq_idempotency`.
    #[must_use]
    pub fn table(self, name: &str) -> Self {
        self.with(|settings| settings.table = Table::named(name))
    }

    /// Gives up on the database after `limit`, 10 seconds by default; waiting for a connection of the pool, and for what others
    /// asked before, is included. A purge of many entries takes several statements, each with the limit.
    ///
    /// The answer is then [`StoreError::Unreachable`]. It ought to be well under the lease. A consumer gives up after
    /// 12 seconds whatever the limit.
    #[must_use]
    pub fn answer_timeout(self, limit: Duration) -> Self {
        self.with(|settings| settings.timeout = limit)
    }

    /// Begins the transactions that handlers take as [`Tx`](super::Tx) on this pool of the same database.
    ///
    /// It lets a store that has connections of its own, as `SqlStore::connect_postgres(…)` has, join them: handlers that hold
    /// every connection of their pool then keep no claim waiting.
    #[must_use]
    pub fn transactions(self, pool: Pool<D>) -> Self {
        self.with(|settings| settings.handlers = Some(pool))
    }

    /// Says that no handler holds a connection of the store's pool while it runs, so that
    /// [`concurrency_limit`](ClaimStore::concurrency_limit) is none.
    #[must_use]
    pub fn pool_to_itself(self) -> Self {
        self.with(|settings| settings.crowded = false)
    }

    /// The statements that create the table and its index.
    #[must_use]
    pub fn create_table_sql(&self) -> String {
        D::create_table(&self.inner.settings.table)
    }

    pub(super) fn inner(&self) -> &Arc<Inner<D>> {
        &self.inner
    }

    async fn submit(&self, kind: Kind, millis: i64, key: &str, token: &Token) -> Result<Verdict, StoreError> {
        let op = Op { kind, millis, key: fit(key).into(), token: token.as_str().into() };
        self.inner.submit(op).await
    }
}

impl<D: Backend> Settings<D> {
    fn of(pool: Pool<D>) -> Self {
        Self {
            pool,
            table: Table::default(),
            timeout: TIMEOUT,
            extensions: Extensions::Used,
            handlers: None,
            crowded: false,
        }
    }
}

impl<D: Backend> Inner<D> {
    pub(super) fn handlers(&self) -> Option<&Pool<D>> {
        self.settings.handlers.as_ref()
    }

    pub(super) fn lane(&self, kind: Kind) -> &Lane {
        self.lanes.of(D::lane(kind))
    }

    pub(super) fn failed(&self, failure: Failure) -> StoreError {
        failure.into_error(&D::create_table(&self.settings.table))
    }
}

/// A length in the unit of the table.
pub(super) fn millis(what: &str, length: Duration) -> Result<i64, StoreError> {
    long_enough(what, length)?;
    Ok(i64::try_from(length.min(LONGEST).as_millis()).unwrap_or(i64::MAX))
}

/// The same store: what is asked of both at the same time goes together.
impl<D: Dialect> Clone for SqlStore<D> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<D: Dialect> fmt::Debug for SqlStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<D: Backend> fmt::Debug for Inner<D> {
    // The pool's settings hold the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlStore")
            .field("database", &D::NAME)
            .field("table", &self.settings.table.display())
            .finish_non_exhaustive()
    }
}

impl<D: Dialect> ClaimStore for SqlStore<D> {
    fn claim<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        lease: Duration,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        async move {
            let millis = millis("lease", lease)?;
            let verdict = self.submit(Kind::Claim, millis, key, token).await?;
            Ok(verdict.into())
        }
        .boxed()
    }

    fn confirm<'a>(
        &'a self,
        key: &'a str,
        token: &'a Token,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        async move {
            let millis = millis("retention", retention)?;
            let verdict = self.submit(Kind::Confirm, millis, key, token).await?;
            Ok(verdict.into())
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
            let millis = millis("lease", lease)?;
            let verdict = self.submit(Kind::Renew, millis, key, token).await?;
            Ok(verdict.into())
        }
        .boxed()
    }

    fn release<'a>(&'a self, key: &'a str, token: &'a Token) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        async move {
            let verdict = self.submit(Kind::Release, 0, key, token).await?;
            Ok(verdict.into())
        }
        .boxed()
    }

    fn purge(&self, most: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        async move { self.inner.purge(most).await.map_err(|e| self.inner.failed(e)) }.boxed()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        async move { self.inner.check().await.map_err(|e| self.inner.failed(e)) }.boxed()
    }

    fn concurrency_limit(&self) -> Option<usize> {
        let most = self.inner.settings.pool.options().get_max_connections();
        let others = usize::try_from(most.saturating_sub(1)).ok();
        others.filter(|_| self.inner.settings.crowded)
    }
}
