//! A database that goes away, and comes back.

use std::{sync::Arc, time::Duration};

use acemq::idempotency::{Claim, ClaimStore, Fenced, StoreError, Token, sql::SqlStore};
use acemq_tests::{
    database::{self, Database, Kind},
    needs,
    proxy::Proxy,
};
use futures_util::future::BoxFuture;
use sqlx::Connection;

use crate::stores::{self, DAY, LEASE};

fn unreachable<T: std::fmt::Debug>(answer: Result<T, StoreError>, what: &str) {
    let Err(StoreError::Unreachable { why }) = &answer else {
        panic!("{what} without a database answers {answer:?}");
    };
    assert!(!why.contains("127.0.0.1") && !why.contains('@'), "{why}");
}

/// A claim is made, the database goes, every operation says that it cannot be reached; it comes back, and all is as before.
async fn comes_and_goes(kind: Kind, killed: bool) {
    let server = Database::start(kind).await;
    let store = stores::on(kind, &server).await.store;
    let (token, other) = (Token::random(), Token::random());
    assert_eq!(store.claim("kept", &token, LEASE).await, Ok(Claim::Claimed));
    assert_eq!(store.claim("freed", &token, LEASE).await, Ok(Claim::Claimed));

    if killed {
        server.kill();
    } else {
        server.stop().await;
    }
    unreachable(store.claim("new", &token, LEASE).await, "a claim");
    unreachable(store.confirm("kept", &token, DAY).await, "a confirmation");
    unreachable(store.renew("kept", &token, LEASE).await, "a renewal");
    unreachable(store.release("freed", &token).await, "a release");
    unreachable(store.purge(10).await, "a purge");
    unreachable(store.check().await, "a check");

    server.start_again().await;
    assert_eq!(store.check().await, Ok(()));
    assert_eq!(store.claim("new", &token, LEASE).await, Ok(Claim::Claimed));
    assert_eq!(store.claim("kept", &other, LEASE).await, Ok(Claim::InProgress));
    assert_eq!(store.renew("kept", &token, LEASE).await, Ok(Fenced::Held));
    assert_eq!(store.confirm("kept", &token, DAY).await, Ok(Fenced::Held));
    assert_eq!(store.release("freed", &token).await, Ok(Fenced::Held));
    assert_eq!(store.claim("freed", &other, LEASE).await, Ok(Claim::Claimed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_postgres_is_unreachable_until_it_is_back() {
    needs!(Postgres);
    comes_and_goes(Kind::Postgres, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_mariadb_is_unreachable_until_it_is_back() {
    needs!(MariaDb);
    comes_and_goes(Kind::MariaDb, true).await;
}

/// Claims and confirms go on while the database restarts: whatever failed is asked again with the same token, and in the
/// end each id was won once.
async fn nothing_is_won_twice_over_a_restart(kind: Kind) {
    let server = Database::start(kind).await;
    let store = stores::on(kind, &server).await.store;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..16 {
        let store = store.clone();
        tasks.spawn(async move {
            for id in 0..60 {
                let (key, token) = (format!("{task}-{id}"), Token::random());
                let claimed = insist(|| store.claim(&key, &token, LEASE)).await;
                assert_eq!(claimed, Claim::Claimed, "a claim that is asked again is recognised");
                let confirmed = insist(|| store.confirm(&key, &token, DAY)).await;
                assert_eq!(confirmed, Fenced::Held, "a confirmation that is asked again is recognised");
                let other = Token::random();
                let duplicate = insist(|| store.claim(&key, &other, LEASE)).await;
                assert_eq!(duplicate, Claim::Duplicate);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.kill();
        server.start_again().await;
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
}

async fn insist<'a, T>(ask: impl Fn() -> BoxFuture<'a, Result<T, StoreError>>) -> T {
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(StoreError::Unreachable { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(other) => panic!("a restart is no reason for {other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_claim_is_lost_or_won_twice_while_postgres_restarts() {
    needs!(Postgres);
    nothing_is_won_twice_over_a_restart(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_claim_is_lost_or_won_twice_while_mariadb_restarts() {
    needs!(MariaDb);
    nothing_is_won_twice_over_a_restart(Kind::MariaDb).await;
}

/// The route is lost without a word, with more asked for than goes into one statement.
async fn a_silent_database_holds_up_nobody_past_the_limit(kind: Kind) {
    let limit = Duration::from_secs(2);
    let url = stores::shared(kind).await.url;
    let proxy = Proxy::start(&url).await;
    let store: Arc<dyn ClaimStore> = match kind {
        Kind::Postgres => Arc::new(SqlStore::postgres(stores::postgres_pool(proxy.url())).answer_timeout(limit)),
        Kind::MariaDb => Arc::new(SqlStore::mysql(stores::mysql_pool(proxy.url())).answer_timeout(limit)),
    };
    let token = Token::random();
    assert_eq!(insist(|| store.claim("before", &token, LEASE)).await, Claim::Claimed);
    proxy.stall_both();
    let mut claims = tokio::task::JoinSet::new();
    for n in 0..900 {
        let store = store.clone();
        claims.spawn(async move { store.claim(&format!("during-{n}"), &Token::random(), LEASE).await });
    }
    // One after the other, the batches would take three times the limit.
    let answers = tokio::time::timeout(limit * 2, claims.join_all()).await.expect("answers in time");
    for answer in answers {
        unreachable(answer, "a claim");
    }
    proxy.resume();
    assert_eq!(insist(|| store.claim("after", &token, LEASE)).await, Claim::Claimed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_postgres_holds_up_nobody_past_the_limit() {
    needs!(Postgres);
    a_silent_database_holds_up_nobody_past_the_limit(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_mariadb_holds_up_nobody_past_the_limit() {
    needs!(MariaDb);
    a_silent_database_holds_up_nobody_past_the_limit(Kind::MariaDb).await;
}

/// Of one batch, a claim of a new key is made before the one that needs the privilege is refused.
#[tokio::test]
async fn a_privilege_that_is_taken_away_in_operation_is_told_and_costs_no_claim_once_it_is_back() {
    needs!(Postgres);
    let server = database::shared(Kind::Postgres).await;
    let url = stores::shared(Kind::Postgres).await.url;
    let user = format!("u{}", uuid::Uuid::new_v4().simple());
    server.sql(&url, &format!("CREATE ROLE {user} LOGIN PASSWORD 'secret'")).await;
    server.sql(&url, &format!("GRANT SELECT, INSERT, UPDATE, DELETE ON acemq_idempotency TO {user}")).await;
    let store = SqlStore::postgres(stores::postgres_pool(&url.replace("postgres@", &format!("{user}:secret@"))));
    let token = Token::random();
    assert_eq!(store.claim("ended", &token, Duration::from_millis(1)).await, Ok(Claim::Claimed));
    server.sql(&url, &format!("REVOKE UPDATE ON acemq_idempotency FROM {user}")).await;
    let claim = |key| store.claim(key, &token, LEASE);
    // The first two go by themselves, and the rest together.
    let (first, second, new, ended) = futures_util::join!(claim("1"), claim("2"), claim("new"), claim("ended"));
    assert_eq!((first, second), (Ok(Claim::Claimed), Ok(Claim::Claimed)));
    for answer in [new, ended] {
        let Err(StoreError::Misconfigured { why }) = answer else { panic!("{answer:?}") };
        assert!(why.contains("permission denied") && !why.contains("secret"), "{why}");
    }
    server.sql(&url, &format!("GRANT UPDATE ON acemq_idempotency TO {user}")).await;
    assert_eq!(claim("ended").await, Ok(Claim::Claimed));
    assert_eq!(store.claim("new", &Token::random(), LEASE).await, Ok(Claim::InProgress), "it was made");
    assert_eq!(claim("new").await, Ok(Claim::Claimed), "and its token knows it");
    assert_eq!(store.release("new", &token).await, Ok(Fenced::Held));
}

#[tokio::test]
async fn a_pool_that_others_hold_is_unreachable_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let (store, pool) = stores::sqlite(dir.path()).await;
    let store = store.answer_timeout(Duration::from_millis(200));
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(pool.acquire().await.unwrap());
    }
    let token = Token::random();
    let refused = store.claim("a", &token, LEASE).await.unwrap_err();
    assert_eq!(refused.to_string(), "the claim store cannot be reached: the database gave no answer within 200ms");
    drop(held);
    // With its usual patience, as a busy machine is slow to answer.
    assert_eq!(SqlStore::sqlite(pool).claim("a", &token, LEASE).await, Ok(Claim::Claimed));
}

#[tokio::test]
async fn a_sqlite_that_another_writes_to_is_waited_for_and_then_unreachable() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = stores::sqlite(dir.path()).await;
    let mut other = sqlx::SqliteConnection::connect_with(&stores::sqlite_options(dir.path())).await.unwrap();
    let writes = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let (token, late) = (Token::random(), Token::random());
    unreachable(store.claim("a", &token, LEASE).await, "a claim");

    // Within its patience, it only waits.
    let waits = tokio::spawn(async move { (store.claim("b", &late, LEASE).await, store) });
    tokio::time::sleep(Duration::from_millis(200)).await;
    writes.rollback().await.unwrap();
    let (claim, store) = waits.await.unwrap();
    assert_eq!(claim, Ok(Claim::Claimed));
    assert_eq!(store.claim("a", &token, LEASE).await, Ok(Claim::Claimed));
}

/// A disk on which there is no room, as SQLite sees it: no page can be added.
#[tokio::test]
async fn a_sqlite_on_a_full_disk_is_unreachable_and_keeps_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    stores::sqlite(dir.path()).await;
    // A limit of pages is that of a connection, so there is one.
    let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
    let pool = pool.connect_with(stores::sqlite_options(dir.path())).await.unwrap();
    let store = SqlStore::sqlite(pool.clone());
    let (token, other) = (Token::random(), Token::random());
    assert_eq!(store.claim("kept", &token, LEASE).await, Ok(Claim::Claimed));
    // Less than there are stands for as many as there are.
    sqlx::raw_sql("PRAGMA max_page_count = 1").execute(&pool).await.unwrap();
    let mut filled = 0;
    let answer = loop {
        match store.claim(&format!("{filled:0200}"), &token, LEASE).await {
            Ok(Claim::Claimed) if filled < 10_000 => filled += 1,
            other => break other,
        }
    };
    unreachable(answer, "a claim on a full disk");
    assert_eq!(store.claim("kept", &other, LEASE).await, Ok(Claim::InProgress));
    assert_eq!(store.confirm("kept", &token, DAY).await, Ok(Fenced::Held));

    sqlx::raw_sql("PRAGMA max_page_count = 100000").execute(&pool).await.unwrap();
    assert_eq!(store.claim(&format!("{filled:0200}"), &other, LEASE).await, Ok(Claim::Claimed));
    assert_eq!(store.claim("kept", &other, LEASE).await, Ok(Claim::Duplicate));
}
