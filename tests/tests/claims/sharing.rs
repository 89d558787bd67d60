//! Who shares what: clocks, tables, libraries.

use std::time::Duration;

use acemq::idempotency::{Claim, ClaimStore, Fenced, Scope, StoreError, Token, sql::SqlStore};
use acemq_tests::{
    database::{self, Kind},
    eventually, needs,
};
use sqlx::{mysql::MySqlPoolOptions, postgres::PgPoolOptions};

use crate::stores::{self, DAY, LEASE};

const SHORT: Duration = Duration::from_millis(800);

/// Leases end when the database says so, however far its clock is from that of this process.
async fn leases_end_by_one_clock(one: &dyn ClaimStore, two: &dyn ClaimStore) {
    let (first, second) = (Token::random(), Token::random());
    assert_eq!(one.claim("long", &first, LEASE).await, Ok(Claim::Claimed));
    assert_eq!(two.claim("long", &second, LEASE).await, Ok(Claim::InProgress), "a live lease is one for all");
    assert_eq!(one.claim("short", &first, SHORT).await, Ok(Claim::Claimed));
    assert_eq!(two.claim("short", &second, LEASE).await, Ok(Claim::InProgress));
    eventually(Duration::from_secs(30), "the lease to end", async || match two.claim("short", &second, LEASE).await {
        Ok(Claim::Claimed) => Ok(()),
        other => Err(other),
    })
    .await;
    assert_eq!(one.confirm("short", &first, DAY).await, Ok(Fenced::Lost));
    assert_eq!(one.renew("long", &first, LEASE).await, Ok(Fenced::Held));
    assert_eq!(two.purge(100).await, Ok(0), "nothing has ended but what was taken over");
    assert_eq!(two.confirm("short", &second, DAY).await, Ok(Fenced::Held));
    assert_eq!(one.claim("short", &first, LEASE).await, Ok(Claim::Duplicate));
}

#[tokio::test]
async fn a_postgres_whose_clock_is_minutes_away_keeps_leases_all_the_same() {
    needs!(Postgres);
    for minutes in [-10, 10] {
        let server = database::shared(Kind::Postgres).await;
        let url = stores::shared(Kind::Postgres).await.url;
        // A clock in front of the server's own.
        let clock =
            "CREATE SCHEMA clock; CREATE FUNCTION clock.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE";
        let shift = format!("{clock} AS 'SELECT pg_catalog.statement_timestamp() + interval ''{minutes} minutes'''");
        server.sql(&url, &shift).await;
        let shifted = format!("{url}?options[search_path]=clock,pg_catalog,public");
        let store = || SqlStore::postgres(PgPoolOptions::new().connect_lazy(&shifted).unwrap());
        let (one, two) = (store(), store());
        leases_end_by_one_clock(&one, &two).await;
        let away = "SELECT (max(recorded_at) - extract(epoch FROM now()) * 1000) / 60000 FROM acemq_idempotency";
        let away: f64 = server.sql(&url, away).await.trim().parse().unwrap();
        assert!((away - f64::from(minutes)).abs() < 1.0, "the clock was {away} minutes away");
    }
}

#[tokio::test]
async fn a_mariadb_whose_clock_is_minutes_away_keeps_leases_all_the_same() {
    needs!(MariaDb);
    for minutes in [-10, 10] {
        let url = stores::shared(Kind::MariaDb).await.url;
        let store = || {
            let pool = MySqlPoolOptions::new().before_acquire(move |connection, _| {
                Box::pin(async move { shift(connection, minutes).await.map(|()| true) })
            });
            let pool = pool.after_connect(move |connection, _| Box::pin(shift(connection, minutes)));
            SqlStore::mysql(pool.connect_lazy(&url).unwrap())
        };
        let (one, two) = (store(), store());
        leases_end_by_one_clock(&one, &two).await;
        let away = "SELECT (max(recorded_at) - unix_timestamp() * 1000) / 60000 FROM acemq_idempotency";
        let away: f64 = database::shared(Kind::MariaDb).await.sql(&url, away).await.trim().parse().unwrap();
        assert!((away - f64::from(minutes)).abs() < 1.0, "the clock was {away} minutes away");
    }
}

/// Sets the clock of a session, which stands still until it is set again.
async fn shift(connection: &mut sqlx::MySqlConnection, minutes: i32) -> Result<(), sqlx::Error> {
    let shift = "SET @@session.timestamp = DEFAULT; SET @@session.timestamp = unix_timestamp(now(6)) + 60 * ";
    let text = format!("{shift}{minutes}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(connection).await.map(drop)
}

#[tokio::test]
async fn tables_of_one_database_are_kept_apart_and_queues_of_one_table_too() {
    needs!(Postgres);
    let stored = stores::shared(Kind::Postgres).await;
    let two = SqlStore::postgres(stores::postgres_pool(&stored.url)).table("claims_of_billing");
    database::shared(Kind::Postgres).await.sql(&stored.url, &two.create_table_sql()).await;
    assert_eq!(two.check().await, Ok(()));
    for store in [&*stored.store, &two as &dyn ClaimStore] {
        let token = Token::random();
        for queue in ["orders", "billing"] {
            let key = Scope::Queue.key(queue, "1");
            assert_eq!(store.claim(&key, &token, LEASE).await, Ok(Claim::Claimed), "{key}");
            assert_eq!(store.confirm(&key, &token, DAY).await, Ok(Fenced::Held), "{key}");
            assert_eq!(store.claim(&key, &Token::random(), LEASE).await, Ok(Claim::Duplicate), "{key}");
        }
    }
}

/// A table as the Python library makes it, and rows as it writes them.
async fn another_library_shares_the_table(kind: Kind, create: &str, now: &str) {
    let server = database::shared(kind).await;
    let url = server.fresh().await;
    server.sql(&url, create).await;
    let store = stores::open(kind, &url);
    assert_eq!(store.check().await, Ok(()));
    let columns = "INSERT INTO acemq_idempotency (message_id, state, claimed_by, recorded_at, expires_at) VALUES";
    for (key, state, ahead) in [("done", "CONFIRMED", 60_000), ("held", "CLAIMED", 60_000), ("left", "CLAIMED", -1)] {
        server.sql(&url, &format!("{columns} ('{key}', '{state}', 'worker-7', {now}, {now} + {ahead})")).await;
    }
    let token = Token::random();
    assert_eq!(store.claim("done", &token, LEASE).await, Ok(Claim::Duplicate));
    assert_eq!(store.claim("held", &token, LEASE).await, Ok(Claim::InProgress));
    assert_eq!(store.confirm("held", &token, DAY).await, Ok(Fenced::Lost));
    assert_eq!(store.claim("left", &token, LEASE).await, Ok(Claim::Claimed));
    assert_eq!(store.confirm("left", &token, DAY).await, Ok(Fenced::Held));
    let state = "SELECT state FROM acemq_idempotency WHERE message_id = 'left'";
    assert_eq!(server.sql(&url, state).await, "CONFIRMED");
    let _: Result<usize, StoreError> = store.purge(10).await;
}

#[tokio::test]
async fn another_library_shares_the_table_in_postgres() {
    needs!(Postgres);
    let create = "CREATE TABLE acemq_idempotency (message_id varchar(255) PRIMARY KEY, state varchar(16) NOT NULL, \
                  claimed_by varchar(64), recorded_at bigint NOT NULL, expires_at bigint)";
    let now = "(extract(epoch FROM now()) * 1000)::bigint";
    another_library_shares_the_table(Kind::Postgres, create, now).await;
}

#[tokio::test]
async fn another_library_shares_the_table_in_mariadb() {
    needs!(MariaDb);
    let create = "CREATE TABLE acemq_idempotency (message_id varchar(255) COLLATE utf8mb4_bin PRIMARY KEY, \
                  state varchar(16) NOT NULL, claimed_by varchar(64), recorded_at bigint NOT NULL, expires_at bigint) \
                  ENGINE=InnoDB DEFAULT CHARSET=utf8mb4";
    another_library_shares_the_table(Kind::MariaDb, create, "unix_timestamp() * 1000").await;
}
