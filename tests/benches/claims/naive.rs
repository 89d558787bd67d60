//! One statement for each claim and one for each confirmation.

use std::{path::Path, sync::Arc, time::Duration};

use crate::setting;
use acemq::idempotency::{Claim, ClaimStore, Fenced, Token, sql::SqlStore};
use acemq_tests::database::{Database, Kind};
use sqlx::{
    AssertSqlSafe, MySqlPool, PgPool, SqlitePool,
    mysql::MySqlPoolOptions,
    postgres::PgPoolOptions,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

/// The size of the pool that both forms use; SQLite has one writer, and one connection.
const CONNECTIONS: u32 = 10;

/// Both forms on one table.
pub(crate) struct Bench {
    /// The naive form, and that of acemq.
    pub forms: [Arc<Form>; 2],
    pub version: String,
    pool: Pool,
    _server: Keep,
}

/// What is measured.
pub(crate) enum Form {
    Naive(Naive),
    Acemq(Arc<dyn ClaimStore>),
}

#[expect(dead_code, reason = "what is kept lives until the end of the measurement")]
enum Keep {
    Server(Database),
    Dir(tempfile::TempDir),
}

#[derive(Debug, Clone)]
enum Pool {
    Postgres(PgPool),
    MariaDb(MySqlPool),
    Sqlite(SqlitePool),
}

/// Runs a statement on whichever pool it is.
macro_rules! on_pool {
    ($pool:expr, $query:ident => $run:expr) => {
        match $pool {
            Pool::Postgres($query) => $run,
            Pool::MariaDb($query) => $run,
            Pool::Sqlite($query) => $run,
        }
    };
}

impl Bench {
    /// Leaves the entries in the table that were there at first.
    pub(crate) async fn clear(&self) {
        self.run("DELETE FROM acemq_idempotency WHERE message_id NOT LIKE 'old:%'").await;
        if let Pool::Postgres(_) = &self.pool {
            self.run("VACUUM ANALYZE acemq_idempotency").await;
        }
    }

    /// Adds so many entries that have been confirmed before: at most 100,000.
    async fn fill(&self, count: u32) {
        let digits = "(SELECT 0 AS i UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 \
                      UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
        let number = "a.i + 10 * (b.i + 10 * (c.i + 10 * (d.i + 10 * e.i)))";
        let text = format!(
            "INSERT INTO acemq_idempotency SELECT concat('old:', {number}), 'CONFIRMED', 'nobody', 0, 4000000000000 + {number} \
             FROM {digits} a, {digits} b, {digits} c, {digits} d, {digits} e LIMIT {count}"
        );
        self.run(&text).await;
    }

    async fn run(&self, text: &str) {
        on_pool!(&self.pool, pool => drop(sqlx::raw_sql(AssertSqlSafe(text)).execute(pool).await.unwrap()));
    }
}

pub(crate) async fn on(database: &str) -> Bench {
    match database {
        "postgres" => {
            let server = Database::start_durable(Kind::Postgres).await;
            let pool = PgPoolOptions::new().max_connections(CONNECTIONS).connect(&server.fresh().await).await.unwrap();
            let (store, create) = created(SqlStore::postgres(pool.clone()), SqlStore::create_table_sql);
            bench(Pool::Postgres(pool), store, &create, "SHOW server_version", POSTGRES, Keep::Server(server)).await
        }
        "mariadb" => {
            let server = Database::start_durable(Kind::MariaDb).await;
            let pool =
                MySqlPoolOptions::new().max_connections(CONNECTIONS).connect(&server.fresh().await).await.unwrap();
            let (store, create) = created(SqlStore::mysql(pool.clone()), SqlStore::create_table_sql);
            bench(Pool::MariaDb(pool), store, &create, "SELECT VERSION()", MARIADB, Keep::Server(server)).await
        }
        "sqlite" => {
            let dir = tempfile::tempdir().unwrap();
            let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options(dir.path())).await.unwrap();
            let (store, create) = created(SqlStore::sqlite(pool.clone()), SqlStore::create_table_sql);
            bench(Pool::Sqlite(pool), store, &create, "SELECT sqlite_version()", SQLITE, Keep::Dir(dir)).await
        }
        other => panic!("CLAIMS_ON names {other}"),
    }
}

fn created<S: ClaimStore>(store: S, create: impl Fn(&S) -> String) -> (Arc<dyn ClaimStore>, String) {
    let create = create(&store);
    (Arc::new(store), create)
}

fn options(dir: &Path) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new().filename(dir.join("claims.db")).create_if_missing(true);
    options.journal_mode(SqliteJournalMode::Wal).synchronous(sqlx::sqlite::SqliteSynchronous::Full)
}

async fn bench(
    pool: Pool,
    store: Arc<dyn ClaimStore>,
    create: &str,
    version: &'static str,
    texts: Texts,
    keep: Keep,
) -> Bench {
    on_pool!(&pool, pool => drop(sqlx::raw_sql(AssertSqlSafe(create)).execute(pool).await.unwrap()));
    let version: String = on_pool!(&pool, pool => sqlx::query_scalar(version).fetch_one(pool).await.unwrap());
    let naive = Form::Naive(Naive { pool: pool.clone(), texts });
    let bench = Bench { forms: [Arc::new(naive), Arc::new(Form::Acemq(store))], version, pool, _server: keep };
    bench.fill(setting("CLAIMS_HELD", 100_000)).await;
    bench
}

#[derive(Debug)]
pub(crate) struct Naive {
    pool: Pool,
    texts: Texts,
}

/// The statements of a claim (key, token, lease) and of a confirmation (retention, key, token).
#[derive(Debug, Clone, Copy)]
struct Texts {
    claim: &'static str,
    confirm: &'static str,
}

const POSTGRES: Texts = Texts {
    claim: "INSERT INTO acemq_idempotency AS t (message_id, state, claimed_by, recorded_at, expires_at) \
            VALUES ($1, 'CLAIMED', $2, CAST(floor(extract(epoch from statement_timestamp()) * 1000) AS bigint), \
            CAST(floor(extract(epoch from statement_timestamp()) * 1000) AS bigint) + $3) \
            ON CONFLICT (message_id) DO UPDATE SET claimed_by = excluded.claimed_by, \
            recorded_at = excluded.recorded_at, expires_at = excluded.expires_at \
            WHERE t.state = 'CLAIMED' AND t.expires_at <= excluded.recorded_at RETURNING message_id",
    confirm: "UPDATE acemq_idempotency SET state = 'CONFIRMED', \
              expires_at = CAST(floor(extract(epoch from statement_timestamp()) * 1000) AS bigint) + $1 \
              WHERE message_id = $2 AND claimed_by = $3",
};

const MARIADB: Texts = Texts {
    claim: "INSERT INTO acemq_idempotency (message_id, state, claimed_by, recorded_at, expires_at) \
            VALUES (?, 'CLAIMED', ?, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000, \
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000 + ?) ON DUPLICATE KEY UPDATE \
            claimed_by = IF(state = 'CLAIMED' AND expires_at <= VALUES(recorded_at), VALUES(claimed_by), claimed_by), \
            recorded_at = IF(state = 'CLAIMED' AND expires_at <= VALUES(recorded_at), VALUES(recorded_at), recorded_at), \
            expires_at = IF(state = 'CLAIMED' AND expires_at <= VALUES(recorded_at), VALUES(expires_at), expires_at) \
            RETURNING message_id",
    confirm: "UPDATE acemq_idempotency SET state = 'CONFIRMED', \
              expires_at = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000 + ? \
              WHERE message_id = ? AND claimed_by = ?",
};

const SQLITE: Texts = Texts {
    claim: "INSERT INTO acemq_idempotency (message_id, state, claimed_by, recorded_at, expires_at) \
            VALUES (?1, 'CLAIMED', ?2, CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER), \
            CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER) + ?3) \
            ON CONFLICT (message_id) DO UPDATE SET claimed_by = excluded.claimed_by, \
            recorded_at = excluded.recorded_at, expires_at = excluded.expires_at \
            WHERE state = 'CLAIMED' AND expires_at <= excluded.recorded_at RETURNING message_id",
    confirm: "UPDATE acemq_idempotency SET state = 'CONFIRMED', \
              expires_at = CAST(round(unixepoch('now', 'subsec') * 1000) AS INTEGER) + ?1 \
              WHERE message_id = ?2 AND claimed_by = ?3",
};

fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap()
}

impl Naive {
    async fn claim(&self, key: &str, token: &Token, lease: Duration) -> Claim {
        let text = self.texts.claim;
        let rows = on_pool!(&self.pool, pool => {
            let query = sqlx::query(text).bind(key).bind(token.as_str()).bind(millis(lease));
            query.fetch_all(pool).await.unwrap().len()
        });
        if rows == 1 { Claim::Claimed } else { Claim::InProgress }
    }

    async fn confirm(&self, key: &str, token: &Token, retention: Duration) -> Fenced {
        let text = self.texts.confirm;
        let rows = on_pool!(&self.pool, pool => {
            let query = sqlx::query(text).bind(millis(retention)).bind(key).bind(token.as_str());
            query.execute(pool).await.unwrap().rows_affected()
        });
        if rows == 1 { Fenced::Held } else { Fenced::Lost }
    }
}

impl Form {
    pub(crate) async fn claim(&self, key: &str, token: &Token, lease: Duration) -> Claim {
        match self {
            Self::Naive(naive) => naive.claim(key, token, lease).await,
            Self::Acemq(store) => store.claim(key, token, lease).await.unwrap(),
        }
    }

    pub(crate) async fn confirm(&self, key: &str, token: &Token, retention: Duration) -> Fenced {
        match self {
            Self::Naive(naive) => naive.confirm(key, token, retention).await,
            Self::Acemq(store) => store.confirm(key, token, retention).await.unwrap(),
        }
    }
}
