//! What goes together, and who gives up in the middle of it.

use std::{sync::Arc, time::Duration};

use acemq::idempotency::{Claim, ClaimStore, Fenced, StoreError, Token};
use acemq_tests::{database::Kind, eventually, needs};
use tokio::{
    runtime::{Builder, Handle},
    task::JoinSet,
    time::timeout,
};

use crate::stores::{self, DAY, LEASE};

/// Each in a batch with the others: leases and retentions of several lengths, keys and pairs that come twice, and all kinds
/// of operations.
async fn answers_find_their_callers(store: Arc<dyn ClaimStore>) {
    let mut tasks = JoinSet::new();
    for task in 0..64_u64 {
        let store = store.clone();
        tasks.spawn(async move {
            let lease = LEASE + Duration::from_secs(task % 3);
            for round in 0..10 {
                let (key, token, other) = (format!("{task}/{round}"), Token::random(), Token::random());
                let (one, two) = tokio::join!(store.claim(&key, &token, lease), store.claim(&key, &other, LEASE));
                let (winner, loser) = match (one, two) {
                    (Ok(Claim::Claimed), Ok(Claim::InProgress)) => (&token, &other),
                    (Ok(Claim::InProgress), Ok(Claim::Claimed)) => (&other, &token),
                    answers => panic!("two claims of one key were answered by {answers:?}"),
                };
                let (held, lost) = (Ok(Fenced::Held), Ok(Fenced::Lost));
                let (won, not) = tokio::join!(store.renew(&key, winner, lease), store.renew(&key, loser, lease));
                assert_eq!((&won, &not), (&held, &lost));
                if task % 4 == 0 {
                    let (won, not) = tokio::join!(store.release(&key, winner), store.release(&key, loser));
                    assert_eq!((&won, &not), (&held, &lost));
                    assert_eq!(store.claim(&key, loser, LEASE).await, Ok(Claim::Claimed));
                } else {
                    let (won, not) = tokio::join!(store.confirm(&key, winner, DAY), store.confirm(&key, loser, LEASE));
                    assert_eq!((&won, &not), (&held, &lost));
                    assert_eq!(store.claim(&key, loser, LEASE).await, Ok(Claim::Duplicate));
                }
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_a_batch_find_their_callers_in_postgres() {
    needs!(Postgres);
    answers_find_their_callers(stores::shared(Kind::Postgres).await.store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_a_batch_find_their_callers_in_mariadb() {
    needs!(MariaDb);
    answers_find_their_callers(stores::shared(Kind::MariaDb).await.store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_a_batch_find_their_callers_with_the_statements_for_mysql() {
    needs!(MariaDb);
    let (store, _) = stores::mariadb().await;
    answers_find_their_callers(Arc::new(store.without_extensions())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_a_batch_find_their_callers_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = stores::sqlite(dir.path()).await;
    answers_find_their_callers(Arc::new(store)).await;
}

/// Callers that wait, and callers whose statement is on its way, go after a moment of any length.
async fn whoever_gives_up_leaves_the_lane_open(store: Arc<dyn ClaimStore>) {
    for round in 0..40 {
        let mut tasks = JoinSet::new();
        for task in 0..16 {
            let store = store.clone();
            tasks.spawn(async move {
                let (key, token) = (format!("{round}-{task}"), Token::random());
                let patience = Duration::from_micros(rand::random_range(0..3_000));
                let _ = timeout(patience, store.claim(&key, &token, LEASE)).await;
                // Its own claim, whatever has become of it.
                assert_eq!(store.claim(&key, &token, LEASE).await, Ok(Claim::Claimed));
                let _ = timeout(patience, store.confirm(&key, &token, DAY)).await;
                assert_eq!(store.confirm(&key, &token, DAY).await, Ok(Fenced::Held));
            });
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_gives_up_leaves_the_lane_open_in_postgres() {
    needs!(Postgres);
    whoever_gives_up_leaves_the_lane_open(stores::shared(Kind::Postgres).await.store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_gives_up_leaves_the_lane_open_in_mariadb() {
    needs!(MariaDb);
    whoever_gives_up_leaves_the_lane_open(stores::shared(Kind::MariaDb).await.store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_gives_up_leaves_the_lane_open_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = stores::sqlite(dir.path()).await;
    whoever_gives_up_leaves_the_lane_open(Arc::new(store)).await;
}

/// As in a `select!` that turns to something else in one of its arms.
#[tokio::test]
async fn who_waits_behind_a_future_that_nobody_polls_gets_an_answer_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = stores::sqlite(dir.path()).await;
    let token = Token::random();
    assert_eq!(store.claim("a", &token, LEASE).await, Ok(Claim::Claimed));
    let store = store.answer_timeout(Duration::from_millis(200));
    let mut renewal = store.renew("a", &token, LEASE);
    assert!(futures_util::poll!(&mut renewal).is_pending());
    let confirmed = timeout(Duration::from_secs(20), store.confirm("a", &token, DAY)).await;
    let why = match confirmed.expect("an answer") {
        Err(StoreError::Unreachable { why }) => why,
        other => panic!("{other:?}"),
    };
    assert!(why.contains("no answer within 200ms"), "{why}");
    drop(renewal);
    let soon = Duration::from_secs(20);
    let confirmed = eventually(soon, "a lane for others", async || store.confirm("a", &token, DAY).await).await;
    assert_eq!(confirmed, Fenced::Held);
}

#[tokio::test]
async fn what_waits_for_a_database_that_does_not_answer_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = stores::sqlite(dir.path()).await;
    let token = Token::random();
    let mut renewal = store.renew("a", &token, LEASE);
    assert!(futures_util::poll!(&mut renewal).is_pending());
    let mut waiting: Vec<_> = (0..100_000).map(|_| store.release("a", &token)).collect();
    for release in &mut waiting {
        assert!(futures_util::poll!(release).is_pending());
    }
    match store.release("a", &token).await {
        Err(StoreError::Unreachable { why }) => assert!(why.contains("100000 operations wait"), "{why}"),
        other => panic!("{other:?}"),
    }
    // Those who have gone leave room, whether or not the database is there.
    drop(waiting);
    assert!(futures_util::poll!(store.claim("b", &token, LEASE)).is_pending());
    drop(renewal);
    let soon = Duration::from_secs(20);
    let claimed = eventually(soon, "room for a claim", async || store.claim("a", &token, LEASE).await).await;
    assert_eq!(claimed, Claim::Claimed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_leaves_no_task_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (store, pool) = stores::sqlite(dir.path()).await;
    let before = Handle::current().metrics().num_alive_tasks();
    let store: Arc<dyn ClaimStore> = Arc::new(store);
    answers_find_their_callers(store.clone()).await;
    drop(store);
    eventually(Duration::from_secs(5), "the tasks of the store to end", async || {
        let now = Handle::current().metrics().num_alive_tasks();
        if now <= before { Ok(()) } else { Err(now) }
    })
    .await;
    pool.close().await;
}

#[test]
fn a_runtime_that_ends_takes_no_lane_with_it() {
    // SQLite's connections have threads of their own, so they outlive a runtime.
    let dir = tempfile::tempdir().unwrap();
    let keeper = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (store, _pool) = keeper.block_on(stores::sqlite(dir.path()));
    let store = Arc::new(store);
    for round in 0..20_u64 {
        let passing = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        for task in 0..16 {
            let store = store.clone();
            passing.spawn(async move {
                for n in 0.. {
                    let _ = store.claim(&format!("{round}/{task}/{n}"), &Token::random(), LEASE).await;
                }
            });
        }
        let waits = keeper.spawn({
            let store = store.clone();
            async move {
                for n in 0..50 {
                    let claim = store.claim(&format!("kept/{round}/{n}"), &Token::random(), LEASE).await;
                    assert_eq!(claim, Ok(Claim::Claimed));
                }
            }
        });
        std::thread::sleep(Duration::from_millis(5 + round));
        passing.shutdown_background();
        let waited = keeper.block_on(async { timeout(Duration::from_secs(20), waits).await });
        waited.expect("claims go on after a runtime has ended").unwrap();
    }
}
