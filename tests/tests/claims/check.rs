//! What a check says about a table, a privilege or a database that will not do.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use acemq::idempotency::{ClaimStore, StoreError, Token, sql::SqlStore};
use acemq_tests::{
    database::{self, Kind},
    needs,
};
use sqlx::{AssertSqlSafe, SqlitePool, mysql::MySqlPoolOptions, sqlite::SqlitePoolOptions};

use crate::stores::{self, LEASE};

/// Why a check calls the store misconfigured.
async fn fault(store: &dyn ClaimStore) -> String {
    match store.check().await {
        Err(StoreError::Misconfigured { why }) => why,
        other => panic!("a check that ought to find a fault answers {other:?}"),
    }
}

/// A spoiled table, and what the check has to say about it. `{}` is the table's own statement, which the first text
/// is replaced in by the second.
type Spoiled = (&'static str, &'static str, &'static str);

const POSTGRES: &[Spoiled] = &[
    (" PRIMARY KEY", "", "message_id is not its primary key"),
    ("NOT NULL PRIMARY KEY", "NOT NULL, n int PRIMARY KEY DEFAULT 1", "message_id is not its primary key"),
    (
        r#""expires_at" bigint NOT NULL )"#,
        r#""expires_at" bigint NOT NULL, UNIQUE (state) )"#,
        "another unique index, on state",
    ),
    ("varchar(255)", "varchar(200)", "message_id is character varying(200), too short for 255 characters"),
    (r#"varchar(255) COLLATE "C""#, "uuid", "message_id is uuid and not text"),
    (r#""claimed_by" varchar(64)"#, r#""claimed_by" varchar(20)"#, "claimed_by is character varying(20), too short"),
    (r#""expires_at" bigint"#, r#""expires_at" integer"#, "expires_at is integer and not a 64-bit integer"),
    (r#""recorded_at" bigint"#, r#""recorded_at" timestamptz"#, "recorded_at is timestamp with time zone and not"),
    (r#""recorded_at" bigint NOT NULL,"#, "", "it has no column recorded_at"),
    (r#""state""#, r#""tenant" text NOT NULL, "state""#, "the column tenant needs a default value"),
];

#[tokio::test]
async fn a_check_finds_what_is_wrong_with_a_table_of_postgres() {
    needs!(Postgres);
    let server = database::shared(Kind::Postgres).await;
    let url = server.fresh().await;
    let store = SqlStore::postgres(stores::postgres_pool(&url));
    let missing = fault(&store).await;
    assert!(missing.contains("does not exist") && missing.ends_with(&store.create_table_sql()), "{missing}");
    // Whoever did not check learns the same at the first claim.
    let claim = store.claim("a", &Token::random(), LEASE).await;
    assert_eq!(claim, Err(StoreError::Misconfigured { why: missing }));
    for (good, bad, sentence) in POSTGRES {
        server.sql(&url, "DROP TABLE IF EXISTS acemq_idempotency").await;
        let create = store.create_table_sql();
        assert!(create.contains(good), "{good}");
        server.sql(&url, &create.replace(good, bad)).await;
        let fault = fault(&store).await;
        assert!(fault.contains(sentence) && fault.ends_with(&create), "{fault}");
    }
    server.sql(&url, "DROP TABLE acemq_idempotency").await;
    let insensitive = "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)";
    server.sql(&url, insensitive).await;
    server.sql(&url, &store.create_table_sql().replace(r#"COLLATE "C""#, "COLLATE loose")).await;
    let fault = fault(&store).await;
    assert!(fault.contains("takes different keys for the same one"), "{fault}");
}

const MARIADB: &[Spoiled] = &[
    (" PRIMARY KEY", "", "message_id is not its primary key"),
    ("utf8mb4_bin", "utf8mb4_general_ci", "message_id is varchar(255) utf8mb4_general_ci, which takes different keys"),
    ("CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "CHARACTER SET latin1 COLLATE latin1_bin", "takes different keys"),
    ("varchar(255)", "varchar(200)", "too short for 255 characters"),
    ("NOT NULL PRIMARY KEY", "NOT NULL, PRIMARY KEY (message_id(20))", "message_id is not its primary key"),
    ("`expires_at` bigint", "`expires_at` int", "expires_at is int and not a 64-bit integer"),
    ("`recorded_at` bigint", "`recorded_at` timestamp", "recorded_at is timestamp and not a 64-bit integer"),
    ("`recorded_at` bigint NOT NULL,", "", "it has no column recorded_at"),
    ("`state`", "`tenant` int NOT NULL, `state`", "the column tenant needs a default value"),
    ("InnoDB", "MEMORY", "its engine has no transactions"),
];

#[tokio::test]
async fn a_check_finds_what_is_wrong_with_a_table_of_mariadb() {
    needs!(MariaDb);
    let server = database::shared(Kind::MariaDb).await;
    let url = server.fresh().await;
    let store = SqlStore::mysql(stores::mysql_pool(&url));
    let missing = fault(&store).await;
    assert!(missing.contains("does not exist") && missing.ends_with(&store.create_table_sql()), "{missing}");
    let claim = store.claim("a", &Token::random(), LEASE).await;
    assert_eq!(claim, Err(StoreError::Misconfigured { why: missing }));
    for (good, bad, sentence) in MARIADB {
        server.sql(&url, "DROP TABLE IF EXISTS acemq_idempotency").await;
        let create = store.create_table_sql();
        assert!(create.contains(good), "{good}");
        server.sql(&url, &create.replacen(good, bad, 1)).await;
        // MariaDB gives the width of its display as well.
        let fault = fault(&store).await.replace("int(11)", "int");
        assert!(fault.contains(sentence) && fault.ends_with(&create), "{fault}");
    }
}

const SQLITE: &[Spoiled] = &[
    ("NOT NULL PRIMARY KEY", "NOT NULL, n INTEGER PRIMARY KEY DEFAULT 1", "message_id is not its primary key"),
    ("varchar(255)", "varchar(255) COLLATE NOCASE", "message_id is varchar(255), which takes different keys"),
    ("varchar(255)", "numeric", "message_id is numeric and not text"),
    (r#""expires_at" integer"#, r#""expires_at" text"#, "expires_at is TEXT and not a 64-bit integer"),
    (r#""recorded_at" integer NOT NULL,"#, "", "it has no column recorded_at"),
    (r#""state""#, r#""tenant" text NOT NULL, "state""#, "the column tenant needs a default value"),
];

async fn run(pool: &SqlitePool, statements: String) {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(pool).await.unwrap();
}

#[tokio::test]
async fn a_check_finds_what_is_wrong_with_a_table_of_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let (store, pool) = stores::sqlite(dir.path()).await;
    let create = store.create_table_sql();
    run(&pool, "DROP TABLE acemq_idempotency".to_owned()).await;
    let missing = fault(&store).await;
    assert!(missing.contains("does not exist") && missing.ends_with(&create), "{missing}");
    let claim = store.claim("a", &Token::random(), LEASE).await;
    assert_eq!(claim, Err(StoreError::Misconfigured { why: missing }));
    for (good, bad, sentence) in SQLITE {
        run(&pool, "DROP TABLE IF EXISTS acemq_idempotency".to_owned()).await;
        assert!(create.contains(good), "{good}");
        run(&pool, create.replace(good, bad)).await;
        let fault = fault(&store).await;
        assert!(fault.contains(sentence) && fault.ends_with(&create), "{fault}");
    }
}

#[tokio::test]
async fn a_table_may_have_another_name_and_a_schema() {
    needs!(Postgres, MariaDb);
    let server = database::shared(Kind::Postgres).await;
    let url = server.fresh().await;
    server.sql(&url, r#"CREATE SCHEMA "odd ""one""""#).await;
    let store = SqlStore::postgres(stores::postgres_pool(&url)).table(r#"odd "one".claims of all"#);
    server.sql(&url, &store.create_table_sql()).await;
    assert_eq!(store.check().await, Ok(()));
    assert!(store.claim("a", &Token::random(), LEASE).await.is_ok());

    let server = database::shared(Kind::MariaDb).await;
    let url = server.fresh().await;
    let store = SqlStore::mysql(stores::mysql_pool(&url)).table("claims `of` all");
    server.sql(&url, &store.create_table_sql()).await;
    assert_eq!(store.check().await, Ok(()));
    assert!(store.claim("a", &Token::random(), LEASE).await.is_ok());

    let dir = tempfile::tempdir().unwrap();
    let (store, pool) = stores::sqlite(dir.path()).await;
    let store = store.table("main.claims of all");
    run(&pool, store.create_table_sql()).await;
    assert_eq!(store.check().await, Ok(()));
    assert!(store.claim("a", &Token::random(), LEASE).await.is_ok());
}

#[tokio::test]
async fn a_check_finds_a_missing_privilege_in_postgres() {
    needs!(Postgres);
    let server = database::shared(Kind::Postgres).await;
    let url = stores::shared(Kind::Postgres).await.url;
    let user = format!("u{}", uuid::Uuid::new_v4().simple());
    server.sql(&url, &format!("CREATE ROLE {user} LOGIN PASSWORD 'secret'")).await;
    let theirs = url.replace("postgres@", &format!("{user}:secret@"));
    let store = SqlStore::postgres(stores::postgres_pool(&theirs));
    for grant in ["SELECT", "INSERT", "UPDATE", "DELETE"] {
        let fault = fault(&store).await;
        assert!(fault.contains("permission denied") && !fault.contains("secret"), "{fault}");
        server.sql(&url, &format!("GRANT {grant} ON acemq_idempotency TO {user}")).await;
    }
    assert_eq!(store.check().await, Ok(()));
}

#[tokio::test]
async fn a_check_finds_a_missing_privilege_in_mariadb() {
    needs!(MariaDb);
    let server = database::shared(Kind::MariaDb).await;
    let url = stores::shared(Kind::MariaDb).await.url;
    let user = format!("u{}", &uuid::Uuid::new_v4().simple().to_string()[..16]);
    server.sql(&url, &format!("CREATE USER {user} IDENTIFIED BY 'secret'")).await;
    server.sql(&url, &format!("GRANT SELECT ON acemq_idempotency TO {user}")).await;
    let theirs = url.replace("root@", &format!("{user}:secret@"));
    let store = SqlStore::mysql(stores::mysql_pool(&theirs));
    for grant in ["INSERT", "UPDATE", "DELETE"] {
        let fault = fault(&store).await;
        assert!(fault.contains("denied") && !fault.contains("secret"), "{fault}");
        server.sql(&url, &format!("GRANT {grant} ON acemq_idempotency TO {user}")).await;
    }
    assert_eq!(store.check().await, Ok(()));
}

#[tokio::test]
async fn a_wrong_password_or_database_is_a_mistake_in_the_set_up() {
    needs!(MariaDb, Postgres);
    let server = database::shared(Kind::MariaDb).await;
    let url = server.url_of("nowhere").replace("root@", "nobody:secret@");
    let fault_of_mariadb = fault(&SqlStore::mysql(stores::mysql_pool(&url))).await;
    assert!(!fault_of_mariadb.contains("secret"), "{fault_of_mariadb}");
    let server = database::shared(Kind::Postgres).await;
    let fault_of_postgres = fault(&SqlStore::postgres(stores::postgres_pool(&server.url_of("nowhere")))).await;
    assert!(fault_of_postgres.contains("nowhere"), "{fault_of_postgres}");
}

/// A database that only reads may be one that somebody fails over from: it is waited for.
fn read_only<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Unreachable { .. })), "{answer:?}");
}

#[tokio::test]
async fn a_read_only_database_is_waited_for() {
    needs!(Postgres, MariaDb);
    let url = stores::shared(Kind::Postgres).await.url;
    let pool = stores::postgres_pool(&format!("{url}?options[default_transaction_read_only]=on"));
    let store = SqlStore::postgres(pool);
    read_only(store.check().await);
    read_only(store.claim("a", &Token::random(), LEASE).await);

    let server = database::Database::start(Kind::MariaDb).await;
    let stored = stores::on(Kind::MariaDb, &server).await;
    server.sql(&stored.url, "CREATE USER plain IDENTIFIED BY 'secret'").await;
    server.sql(&stored.url, "GRANT ALL ON acemq_idempotency TO plain").await;
    server.sql(&stored.url, "SET GLOBAL read_only = 1").await;
    let store = SqlStore::mysql(stores::mysql_pool(&stored.url.replace("root@", "plain:secret@")));
    read_only(store.check().await);
    read_only(store.claim("a", &Token::random(), LEASE).await);
    server.sql(&stored.url, "SET GLOBAL read_only = 0").await;
    assert_eq!(store.check().await, Ok(()));

    let dir = tempfile::tempdir().unwrap();
    stores::sqlite(dir.path()).await;
    let options = stores::sqlite_options(dir.path()).read_only(true);
    let store = SqlStore::sqlite(SqlitePoolOptions::new().connect_lazy_with(options));
    read_only(store.check().await);
    read_only(store.claim("a", &Token::random(), LEASE).await);
}

#[tokio::test]
async fn isolation_that_makes_claims_fail_each_other_is_found() {
    needs!(Postgres, MariaDb);
    let url = stores::shared(Kind::Postgres).await.url;
    let strict = format!("{url}?options[default_transaction_isolation]=repeatable%20read");
    let fault_of_postgres = fault(&SqlStore::postgres(stores::postgres_pool(&strict))).await;
    assert!(fault_of_postgres.contains("isolation level repeatable read"), "{fault_of_postgres}");
    // A pool of the store's own sets what it needs.
    assert_eq!(SqlStore::connect_postgres(strict.parse().unwrap()).check().await, Ok(()));
}

#[tokio::test]
async fn a_pool_that_handlers_share_limits_how_many_may_run() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = stores::sqlite(dir.path()).await;
    assert_eq!(store.concurrency_limit(), Some(4));
    let own = SqlStore::connect_sqlite(stores::sqlite_options(dir.path()));
    assert_eq!(own.concurrency_limit(), None);
}

/// What is logged while it lives, on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_check_tells_of_sessions_that_wait_long_for_a_lock() {
    needs!(MariaDb);
    let url = stores::shared(Kind::MariaDb).await.url;
    let (usual, short) = (Duration::from_secs(10), Duration::from_secs(2));
    for (wait, extensions, limit, told) in [
        (50, false, usual, true),
        (5, false, usual, true),
        (1, false, usual, false),
        (1, false, short, false),
        (50, true, usual, database::is_mysql()),
    ] {
        let set = format!("SET SESSION innodb_lock_wait_timeout = {wait}");
        let pool = MySqlPoolOptions::new().after_connect(move |connection, _| {
            let set = set.clone();
            Box::pin(async move { sqlx::query(AssertSqlSafe(set)).execute(connection).await.map(drop) })
        });
        let store = SqlStore::mysql(pool.connect_lazy(&url).unwrap()).answer_timeout(limit);
        // MariaDB takes the limit with each statement, if it may.
        let store = if extensions { store } else { store.without_extensions() };
        let log = Log::default();
        let writer = log.clone();
        let logging = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        let logging = tracing::subscriber::set_default(logging);
        assert_eq!(store.check().await, Ok(()));
        drop(logging);
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.contains("innodb_lock_wait_timeout"), told, "{wait} s: {text}");
    }
}
