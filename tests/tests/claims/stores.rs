//! Stores with a table of their own.

use std::{path::Path, sync::Arc, time::Duration};

use acemq::idempotency::{ClaimStore, sql::SqlStore};
use acemq_tests::database::{self, Database, Kind};
use sqlx::{
    AssertSqlSafe, MySql, MySqlPool, PgPool, Postgres, Sqlite, SqlitePool,
    mysql::MySqlPoolOptions,
    postgres::PgPoolOptions,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

pub(crate) const LEASE: Duration = Duration::from_mins(5);
pub(crate) const DAY: Duration = Duration::from_hours(24);

/// A store, and the database behind it in a test's own words.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) store: Arc<dyn ClaimStore>,
    pub(crate) url: String,
}

/// The store over a pool for `url`, where its table is.
pub(crate) fn open(kind: Kind, url: &str) -> Arc<dyn ClaimStore> {
    match kind {
        Kind::Postgres => Arc::new(SqlStore::postgres(postgres_pool(url)).answer_timeout(Duration::from_secs(5))),
        Kind::MariaDb => Arc::new(SqlStore::mysql(mysql_pool(url)).answer_timeout(Duration::from_secs(5))),
    }
}

/// [`open`] for an application whose handlers use no connection of the pool.
pub(crate) fn roomy(kind: Kind, url: &str) -> Arc<dyn ClaimStore> {
    match kind {
        Kind::Postgres => Arc::new(SqlStore::postgres(postgres_pool(url)).pool_to_itself()),
        Kind::MariaDb => Arc::new(SqlStore::mysql(mysql_pool(url)).pool_to_itself()),
    }
}

/// A store with its table in a new database of `server`.
pub(crate) async fn on(kind: Kind, server: &Database) -> Stored {
    let url = server.fresh().await;
    server.sql(&url, &create_table(kind, &url)).await;
    Stored { store: open(kind, &url), url }
}

pub(crate) async fn shared(kind: Kind) -> Stored {
    on(kind, database::shared(kind).await).await
}

pub(crate) fn create_table(kind: Kind, url: &str) -> String {
    match kind {
        Kind::Postgres => SqlStore::postgres(postgres_pool(url)).create_table_sql(),
        Kind::MariaDb => SqlStore::mysql(mysql_pool(url)).create_table_sql(),
    }
}

pub(crate) fn postgres_pool(url: &str) -> PgPool {
    let options = PgPoolOptions::new().max_connections(10).acquire_timeout(Duration::from_secs(2));
    options.connect_lazy(url).unwrap()
}

pub(crate) fn mysql_pool(url: &str) -> MySqlPool {
    let options = MySqlPoolOptions::new().max_connections(10).acquire_timeout(Duration::from_secs(2));
    if !database::is_mysql() {
        return options.connect_lazy(url).unwrap();
    }
    // As its users are told to: acemq tells MariaDB so with each statement, and a MySQL cannot be told like that.
    let options = options.after_connect(|connection, _| {
        Box::pin(async move {
            sqlx::query("SET SESSION innodb_lock_wait_timeout = 1").execute(&mut *connection).await.map(drop)
        })
    });
    options.connect_lazy(url).unwrap()
}

pub(crate) async fn postgres() -> (SqlStore<Postgres>, PgPool) {
    let url = shared(Kind::Postgres).await.url;
    let pool = postgres_pool(&url);
    (SqlStore::postgres(pool.clone()), pool)
}

pub(crate) async fn mariadb() -> (SqlStore<MySql>, MySqlPool) {
    let url = shared(Kind::MariaDb).await.url;
    let pool = mysql_pool(&url);
    (SqlStore::mysql(pool.clone()), pool)
}

/// A database in a file of `dir`.
pub(crate) fn sqlite_options(dir: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(dir.join("claims.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(Duration::from_millis(500))
}

pub(crate) async fn sqlite(dir: &Path) -> (SqlStore<Sqlite>, SqlitePool) {
    let pool = SqlitePoolOptions::new().max_connections(5).connect_with(sqlite_options(dir)).await.unwrap();
    let store = SqlStore::sqlite(pool.clone());
    sqlx::raw_sql(AssertSqlSafe(store.create_table_sql())).execute(&pool).await.unwrap();
    (store, pool)
}
