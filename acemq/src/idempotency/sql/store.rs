use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt as _};
use sqlx::Pool;

use super::{
    backend::{Backend, Dialect},
    error::Failure,
    lanes::{Lane, Lanes},
    op::{Kind, Op, Verdict},
    table::Table,
};
use crate::idempotency::{Claim, ClaimStore, Fenced, StoreError, Token, key::fit, store::long_enough};

/// How long a statement may take in all, with waiting for a connection and with all its tries.
const TIMEOUT: Duration = Duration::from_secs(10);

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
    pub(super) pool: Pool<D>,
    pub(super) sql: D::Sql,
    pub(super) table: Table,
    pub(super) timeout: Duration,
    lanes: Lanes,
    /// Whether the pool serves nothing else.
    own: bool,
}

impl<D: Dialect> SqlStore<D> {
    pub(super) fn shared(pool: Pool<D>) -> Self {
        Self::build(pool, Table::default(), TIMEOUT, false)
    }

    pub(super) fn own(pool: Pool<D>) -> Self {
        Self::build(pool, Table::default(), TIMEOUT, true)
    }

    fn build(pool: Pool<D>, table: Table, timeout: Duration, own: bool) -> Self {
        let inner = Inner { pool, sql: D::sql(&table), table, timeout, lanes: Lanes::default(), own };
        Self { inner: Arc::new(inner) }
    }

    /// Uses the table `name`, or `schema.name`, rather than `acemq_idempotency`.
    #[must_use]
    pub fn table(self, name: &str) -> Self {
        let Inner { pool, timeout, own, .. } = &*self.inner;
        Self::build(pool.clone(), Table::named(name), *timeout, *own)
    }

    /// Gives up on the database after `limit`, 10 seconds by default; waiting for a connection of the pool is included.
    ///
    /// The answer is then [`StoreError::Unreachable`]. It ought to be well under the lease.
    #[must_use]
    pub fn answer_timeout(self, limit: Duration) -> Self {
        let Inner { pool, table, own, .. } = &*self.inner;
        Self::build(pool.clone(), table.clone(), limit, *own)
    }

    #[cfg(feature = "mysql")]
    pub(super) fn with_sql(self, sql: D::Sql) -> Self {
        let Inner { pool, table, timeout, own, .. } = &*self.inner;
        let (pool, table, timeout, own) = (pool.clone(), table.clone(), *timeout, *own);
        Self { inner: Arc::new(Inner { pool, sql, table, timeout, lanes: Lanes::default(), own }) }
    }

    /// The statements that create the table and its index.
    #[must_use]
    pub fn create_table_sql(&self) -> String {
        D::create_table(&self.inner.table)
    }

    pub(super) fn inner(&self) -> &Inner<D> {
        &self.inner
    }

    async fn submit(&self, kind: Kind, millis: i64, key: &str, token: &Token) -> Result<Verdict, StoreError> {
        let op = Op { kind, millis, key: fit(key).into(), token: token.as_str().into() };
        self.inner.submit(op).await
    }
}

impl<D: Backend> Inner<D> {
    pub(super) fn lane(&self, kind: Kind) -> &Lane {
        self.lanes.of(D::lane(kind))
    }

    pub(super) fn failed(&self, failure: Failure) -> StoreError {
        failure.into_error(&D::create_table(&self.table))
    }
}

/// A length in the unit of the table. What is longer than a century counts as one, so that no sum overflows.
pub(super) fn millis(what: &str, length: Duration) -> Result<i64, StoreError> {
    const CENTURY: i64 = 100 * 365 * 24 * 3_600_000;
    long_enough(what, length)?;
    Ok(i64::try_from(length.as_millis()).map_or(CENTURY, |millis| millis.min(CENTURY)))
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
            .field("table", &self.table.display())
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
        let most = self.inner.pool.options().get_max_connections();
        let others = usize::try_from(most.saturating_sub(1)).ok();
        others.filter(|_| !self.inner.own)
    }
}
