//! Processes that share a table, and one that is killed.

use std::{path::Path, sync::Arc, time::Duration};

use acemq::idempotency::{Claim, ClaimStore, Token, sql::SqlStore};
use acemq_tests::{database::Kind, eventually, needs, process};
use tokio::task::JoinSet;

use crate::stores::{self, LEASE};

const IDS: usize = 10_000;
const PATIENCE: Duration = Duration::from_mins(3);

/// The test `name` in a process of its own, with the store at `place`: a URL, or the directory of an SQLite database.
fn child(name: &str, place: &str) -> process::Program {
    process::Builder::test(&format!("processes::{name}")).env("CLAIMS_AT", place).start()
}

/// The store that [`child`] was told of.
fn told() -> Arc<dyn ClaimStore> {
    let place = std::env::var("CLAIMS_AT").unwrap();
    match place.split_once("://") {
        Some(("postgres", _)) => stores::open(Kind::Postgres, &place),
        Some(_) => stores::open(Kind::MariaDb, &place),
        None => Arc::new(SqlStore::connect_sqlite(stores::sqlite_options(Path::new(&place)))),
    }
}

/// Claims all ids and prints how many it has won, from the first to the last and from both ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in a process of its own, which another test starts"]
async fn claims_all() {
    let store = told();
    let mut tasks = JoinSet::new();
    for task in 0..16 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut won = Vec::new();
            for n in 0..IDS {
                let id = if task % 2 == 0 { n } else { IDS - 1 - n };
                match store.claim(&id.to_string(), &Token::random(), LEASE).await {
                    Ok(Claim::Claimed) => won.push(id),
                    other => assert_eq!(other, Ok(Claim::InProgress)),
                }
            }
            won
        });
    }
    let mut won = tasks.join_all().await.concat();
    won.sort_unstable();
    println!("won: {won:?}");
}

async fn each_id_is_won_by_one_process(place: &str) {
    let mut children = [child("claims_all", place), child("claims_all", place)];
    let mut winners = vec![0; IDS];
    for child in &mut children {
        let line = child.line("won: [", PATIENCE).await;
        let ids = line.split_once("won: [").unwrap().1.trim_end_matches(']');
        for id in ids.split(", ").filter(|id| !id.is_empty()) {
            winners[id.parse::<usize>().unwrap()] += 1;
        }
        assert!(child.ended(PATIENCE).await.success());
    }
    let wrong = winners.iter().enumerate().filter(|(_, count)| **count != 1);
    assert_eq!(wrong.collect::<Vec<_>>(), [], "ids, each with how often it was won");
}

#[tokio::test]
async fn each_id_is_won_by_one_process_in_postgres() {
    needs!(Postgres);
    each_id_is_won_by_one_process(&stores::shared(Kind::Postgres).await.url).await;
}

#[tokio::test]
async fn each_id_is_won_by_one_process_in_mariadb() {
    needs!(MariaDb);
    each_id_is_won_by_one_process(&stores::shared(Kind::MariaDb).await.url).await;
}

#[tokio::test]
async fn each_id_is_won_by_one_process_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    // It creates the table.
    stores::sqlite(dir.path()).await;
    each_id_is_won_by_one_process(dir.path().to_str().unwrap()).await;
}

/// Claims one id for as long as it lives, by a lease of two seconds that it renews.
#[tokio::test]
#[ignore = "runs in a process of its own, which another test starts"]
async fn holds_one() {
    let store = told();
    let (token, lease) = (Token::random(), Duration::from_secs(2));
    assert_eq!(store.claim("held", &token, lease).await, Ok(Claim::Claimed));
    println!("holds it");
    loop {
        tokio::time::sleep(lease / 4).await;
        let _ = store.renew("held", &token, lease).await.unwrap();
    }
}

async fn a_killed_process_keeps_a_claim_no_longer_than_its_lease(kind: Kind) {
    let stored = stores::shared(kind).await;
    let mut child = child("holds_one", &stored.url);
    child.line("holds it", PATIENCE).await;
    // Longer than the lease, so that it lives by its renewals.
    for _ in 0..6 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let claim = stored.store.claim("held", &Token::random(), LEASE).await;
        assert_eq!(claim, Ok(Claim::InProgress));
    }
    child.kill();
    child.ended(PATIENCE).await;
    let token = Token::random();
    assert_eq!(stored.store.claim("held", &token, LEASE).await, Ok(Claim::InProgress));
    eventually(Duration::from_secs(6), "the lease to end", async || {
        match stored.store.claim("held", &token, LEASE).await {
            Ok(Claim::Claimed) => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

#[tokio::test]
async fn a_killed_process_keeps_a_claim_no_longer_than_its_lease_in_postgres() {
    needs!(Postgres);
    a_killed_process_keeps_a_claim_no_longer_than_its_lease(Kind::Postgres).await;
}

#[tokio::test]
async fn a_killed_process_keeps_a_claim_no_longer_than_its_lease_in_mariadb() {
    needs!(MariaDb);
    a_killed_process_keeps_a_claim_no_longer_than_its_lease(Kind::MariaDb).await;
}
