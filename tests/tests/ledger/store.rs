//! A claim store that outlives the applications of a run, and can be out of reach.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use acemq::idempotency::{Claim, ClaimStore, Fenced, MemoryStore, StoreError, Token, sql::SqlStore};
use futures_util::{FutureExt, future::BoxFuture};
use sqlx::{AssertSqlSafe, Connection as _, sqlite::SqliteConnectOptions};

#[derive(Debug, Clone, Default)]
pub(crate) struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    claims: Box<dyn ClaimStore>,
    away: AtomicBool,
}

impl Default for Inner {
    fn default() -> Self {
        Self { claims: Box::new(MemoryStore::new()), away: AtomicBool::new(false) }
    }
}

impl Store {
    /// Claims in an SQLite database of this directory; in memory unless asked for.
    pub(crate) async fn sqlite(dir: &Path) -> Self {
        let options = SqliteConnectOptions::new().filename(dir.join("claims.db")).create_if_missing(true);
        let store = SqlStore::connect_sqlite(options.clone());
        let mut connection = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(store.create_table_sql())).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        Self(Arc::new(Inner { claims: Box::new(store), away: AtomicBool::new(false) }))
    }

    /// Out of reach for everything but confirms, whose loss makes duplicates.
    pub(crate) fn be_away(&self, away: bool) {
        self.0.away.store(away, Ordering::SeqCst);
    }

    fn reach(&self) -> Result<&dyn ClaimStore, StoreError> {
        if self.0.away.load(Ordering::SeqCst) {
            Err(StoreError::Unreachable { why: "a fault".to_owned() })
        } else {
            Ok(&*self.0.claims)
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
