//! Its databases start empty, and keep what they should.

use std::time::{Duration, Instant};

use acemq_tests::database::{self, Database, Kind};
use acemq_tests::eventually;

const SOON: Duration = Duration::from_secs(20);

async fn a_database_survives(kind: Kind) {
    let start = Instant::now();
    let own = Database::start(kind).await;
    eprintln!("{kind:?} started in {:?}", start.elapsed());
    let url = own.fresh().await;
    own.sql(&url, "CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO kept VALUES (1), (2)").await;
    assert!(own.try_sql(&url, "INSERT INTO kept VALUES (1)").await.is_err());

    let start = Instant::now();
    own.kill();
    eprintln!("killed in {:?}", start.elapsed());
    assert!(own.try_sql(&url, "SELECT 1").await.is_err());
    let start = Instant::now();
    own.start_again().await;
    eprintln!("started again in {:?}", start.elapsed());
    assert_eq!(own.sql(&url, "SELECT id, id + 1 FROM kept ORDER BY id").await, "1\t2\n2\t3");

    let start = Instant::now();
    own.restart().await;
    eprintln!("restarted in {:?}", start.elapsed());
    assert_eq!(own.sql(&url, "SELECT count(*) FROM kept").await, "2");
}

/// Starts two databases on one server and looks from the one at the other.
async fn fresh_databases_are_empty(kind: Kind) {
    let shared = database::shared(kind).await;
    let (one, other) = (shared.fresh().await, shared.fresh().await);
    shared.sql(&one, "CREATE TABLE mine (id int)").await;
    assert!(shared.try_sql(&other, "SELECT * FROM mine").await.is_err());
    assert_eq!(shared.sql(&one, "SELECT * FROM mine").await, "");
}

#[tokio::test]
async fn a_postgresql_survives_what_is_done_to_it() {
    acemq_tests::needs!(Postgres);
    a_database_survives(Kind::Postgres).await;
}

#[tokio::test]
async fn a_mariadb_survives_what_is_done_to_it() {
    acemq_tests::needs!(MariaDb);
    a_database_survives(Kind::MariaDb).await;
}

#[tokio::test]
async fn fresh_databases_of_postgresql_are_empty() {
    acemq_tests::needs!(Postgres);
    fresh_databases_are_empty(Kind::Postgres).await;
}

#[tokio::test]
async fn fresh_databases_of_mariadb_are_empty() {
    acemq_tests::needs!(MariaDb);
    fresh_databases_are_empty(Kind::MariaDb).await;
}

#[tokio::test]
async fn a_dropped_database_is_gone() {
    acemq_tests::needs!(Postgres);
    let own = Database::start(Kind::Postgres).await;
    let (port, process) = (own.port(), own.process_id().expect("it was started"));
    drop(own);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    eventually(SOON, "the end of the server", async || {
        let process = std::path::PathBuf::from(format!("/proc/{process}"));
        if process.exists() { Err(process) } else { Ok(()) }
    })
    .await;
}
