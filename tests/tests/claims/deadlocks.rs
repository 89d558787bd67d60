//! Transactions that get in each other's way.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use acemq::idempotency::{Claim, ClaimStore, Fenced, StoreError, Token, sql::SqlStore};
use acemq_tests::{database::Kind, eventually, needs, wait::within};
use futures_util::future::join_all;
use sqlx::{AssertSqlSafe, Database, Executor, IntoArguments, MySql, MySqlPool, Pool, Transaction};
use tokio::time::timeout;

use crate::stores::{self, DAY, LEASE};

const PATIENCE: Duration = Duration::from_secs(20);

async fn touch<'t, D>(transaction: &mut Transaction<'t, D>, key: &str)
where
    D: Database,
    D::Arguments: IntoArguments<D>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let text = format!("UPDATE acemq_idempotency SET recorded_at = recorded_at + 1 WHERE message_id = '{key}'");
    // The other side may have been chosen to give way.
    let _ = sqlx::query(AssertSqlSafe(text)).execute(&mut **transaction).await;
}

/// A batch has locked `a` and waits for `z`, whose holder then asks for `a`.
async fn a_batch_survives_a_deadlock<D>(store: Arc<dyn ClaimStore>, pool: Pool<D>)
where
    D: Database,
    D::Arguments: IntoArguments<D>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let token = Token::random();
    // What goes alone keeps the lane busy, so that `a` and `z` wait together.
    let alone: Vec<_> = (0..8).map(|n| format!("alone{n}")).collect();
    for key in alone.iter().map(String::as_str).chain(["a", "z"]) {
        assert_eq!(store.claim(key, &token, LEASE).await, Ok(Claim::Claimed));
    }
    let mut busy = pool.begin().await.unwrap();
    for key in &alone {
        touch(&mut busy, key).await;
    }
    let mut other = pool.begin().await.unwrap();
    touch(&mut other, "z").await;

    let confirm = |key: &str| {
        let (store, token, key) = (store.clone(), token.clone(), key.to_owned());
        tokio::spawn(async move { store.confirm(&key, &token, DAY).await })
    };
    let mut confirms: Vec<_> = alone.iter().map(|key| confirm(key)).collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    confirms.extend([confirm("a"), confirm("z")]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    busy.rollback().await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    touch(&mut other, "a").await;
    let _ = other.rollback().await;
    for confirm in confirms {
        let confirmed = within(PATIENCE, "a confirmation", confirm).await.unwrap();
        assert_eq!(confirmed, Ok(Fenced::Held));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_survives_a_deadlock() {
    needs!(Postgres);
    let (store, pool) = stores::postgres().await;
    a_batch_survives_a_deadlock(Arc::new(store), pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_survives_a_deadlock() {
    needs!(MariaDb);
    let (store, pool) = stores::mariadb().await;
    a_batch_survives_a_deadlock(Arc::new(store), pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_serialised_is_tried_again() {
    needs!(Postgres);
    let url = stores::shared(Kind::Postgres).await.url;
    let pool = stores::postgres_pool(&format!("{url}?options[default_transaction_isolation]=serializable"));
    let store = Arc::new(SqlStore::postgres(pool.clone()));
    let token = Token::random();
    assert_eq!(store.claim("a", &token, LEASE).await, Ok(Claim::Claimed));
    let mut other = pool.begin().await.unwrap();
    touch(&mut other, "a").await;
    let confirm = tokio::spawn({
        let (store, token) = (store.clone(), token.clone());
        async move { store.confirm("a", &token, DAY).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    other.commit().await.unwrap();
    assert_eq!(within(PATIENCE, "a confirmation", confirm).await.unwrap(), Ok(Fenced::Held));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_session_of_postgres_is_replaced() {
    needs!(Postgres);
    let (store, pool) = stores::postgres().await;
    let store = Arc::new(store);
    let token = Token::random();
    assert_eq!(store.claim("a", &token, LEASE).await, Ok(Claim::Claimed));
    let mut other = pool.begin().await.unwrap();
    touch(&mut other, "a").await;
    let confirm = tokio::spawn({
        let (store, token) = (store.clone(), token.clone());
        async move { store.confirm("a", &token, DAY).await }
    });
    let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
                 AND wait_event_type = 'Lock' AND query LIKE 'UPDATE \"acemq_idempotency\"%'";
    eventually(PATIENCE, "a session that waits for the lock", async || {
        let ended = sqlx::query(ended).fetch_all(&pool).await.unwrap();
        if ended.len() == 1 { Ok(()) } else { Err(ended.len()) }
    })
    .await;
    other.rollback().await.unwrap();
    assert_eq!(within(PATIENCE, "a confirmation", confirm).await.unwrap(), Ok(Fenced::Held));
}

/// A handler's transaction has confirmed `a` and takes its time to commit.
async fn a_locked_entry_holds_up_nobody<D>(store: Arc<dyn ClaimStore>, pool: Pool<D>)
where
    D: Database,
    D::Arguments: IntoArguments<D>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let (token, other) = (Token::random(), Token::random());
    for key in ["a", "b"] {
        assert_eq!(store.claim(key, &token, Duration::from_millis(400)).await, Ok(Claim::Claimed));
    }
    let mut handler = pool.begin().await.unwrap();
    touch(&mut handler, "a").await;

    // Before the lease has ended, and after.
    for _ in 0..2 {
        let start = Instant::now();
        assert_eq!(store.claim("a", &other, LEASE).await, Ok(Claim::InProgress));
        let mut claims = tokio::task::JoinSet::new();
        for n in 0..20 {
            let store = store.clone();
            claims.spawn(async move {
                let key = if n % 5 == 0 { "a".to_owned() } else { Token::random().as_str().to_owned() };
                let claimed = store.claim(&key, &Token::random(), LEASE).await;
                assert_eq!(claimed, Ok(if n % 5 == 0 { Claim::InProgress } else { Claim::Claimed }));
            });
        }
        while let Some(claim) = claims.join_next().await {
            claim.unwrap();
        }
        assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    // Renewals come while the transaction is open, and must not cost the others their leases.
    let (first, second) = tokio::join!(store.renew("a", &token, LEASE), store.renew("b", &token, LEASE));
    assert!(matches!(first, Err(StoreError::Unreachable { .. })), "{first:?}");
    assert_eq!(second, Ok(Fenced::Held));
    handler.rollback().await.unwrap();
    assert_eq!(store.confirm("a", &token, DAY).await, Ok(Fenced::Held));
}

/// Claims these keys, and leaves them locked by a transaction that takes its time.
async fn claimed_and_locked(
    store: &SqlStore<MySql>,
    pool: &MySqlPool,
    token: &Token,
    keys: &[&str],
) -> Transaction<'static, MySql> {
    let mut handler = pool.begin().await.unwrap();
    for key in keys {
        assert_eq!(store.claim(key, token, LEASE).await, Ok(Claim::Claimed));
        touch(&mut handler, key).await;
    }
    handler
}

#[tokio::test]
async fn locked_entries_cost_no_other_its_answer_in_mariadb() {
    needs!(MariaDb);
    let (store, pool) = stores::mariadb().await;
    let store = store.answer_timeout(Duration::from_secs(8));
    let token = Token::random();
    let (first, free) = (["first", "second"], ["a", "c", "e", "g", "z"]);
    let locked = ["b", "d"];
    for key in first.iter().chain(&free) {
        assert_eq!(store.claim(key, &token, LEASE).await, Ok(Claim::Claimed));
    }
    let handler = claimed_and_locked(&store, &pool, &token, &locked).await;

    // Asked on one task: the first two go by themselves, and the rest together, in the order of their keys. Of another length
    // is one that is locked, and has a statement of its own.
    let confirm = |key, retention| store.confirm(key, &token, retention);
    let asked = first.into_iter().chain(free).map(|key| confirm(key, DAY));
    let asked = asked.chain([confirm("b", DAY), confirm("d", DAY * 2), confirm("d", DAY)]);
    let mut answers = join_all(asked).await;
    let late = answers.split_off(first.len() + free.len());
    assert!(answers.iter().all(|answer| *answer == Ok(Fenced::Held)), "{answers:?}");
    assert!(late.iter().all(|answer| matches!(answer, Err(StoreError::Unreachable { .. }))), "{late:?}");

    // Many that want one locked entry cost the others no more than one.
    let lone = ["third", "fourth"];
    let fresh = ["j", "k", "l"];
    let tokens: Vec<_> = (0..12).map(|_| Token::random()).collect();
    let asked = lone.iter().chain(&fresh).map(|key| store.claim(key, &token, LEASE));
    let asked = asked.chain(tokens.iter().map(|other| store.claim("b", other, LEASE)));
    let mut answers = join_all(asked).await;
    let late = answers.split_off(lone.len() + fresh.len());
    assert!(answers.iter().all(|answer| *answer == Ok(Claim::Claimed)), "{answers:?}");
    assert!(late.iter().all(|answer| *answer == Ok(Claim::InProgress)), "{late:?}");

    handler.rollback().await.unwrap();
    assert_eq!(store.confirm("b", &token, DAY).await, Ok(Fenced::Held));
}

/// It is after locked ones in the order of the keys, and given up before its turn.
#[tokio::test]
async fn a_claim_that_is_given_up_while_others_are_waited_for_is_not_made_in_mariadb() {
    needs!(MariaDb);
    let (store, pool) = stores::mariadb().await;
    let token = Token::random();
    let locked = ["a", "b", "c", "d", "e", "f"];
    let handler = claimed_and_locked(&store, &pool, &token, &locked).await;
    let mut claims = locked.iter().map(|key| store.claim(key, &token, LEASE));
    let lone = join_all(claims.by_ref().take(2));
    let given_up = timeout(Duration::from_millis(1_500), store.claim("zz", &token, LEASE));
    let (_, gone, _) = futures_util::join!(lone, given_up, join_all(claims));
    assert!(gone.is_err(), "it was to wait for the locked ones: {gone:?}");
    handler.rollback().await.unwrap();
    assert_eq!(store.claim("zz", &Token::random(), LEASE).await, Ok(Claim::Claimed));
}

/// Who has locked an entry is not to be seen: the handler's own transaction, or somebody who takes an ended lease over.
async fn a_late_renewal_overlooks_no_takeover<D>(store: Arc<dyn ClaimStore>, pool: Pool<D>)
where
    D: Database,
    D::Arguments: IntoArguments<D>,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    let token = Token::random();
    assert_eq!(store.claim("late", &token, Duration::from_millis(1)).await, Ok(Claim::Claimed));
    assert_eq!(store.claim("in time", &token, LEASE).await, Ok(Claim::Claimed));
    let mut other = pool.begin().await.unwrap();
    touch(&mut other, "in time").await;
    let takeover = "UPDATE acemq_idempotency SET claimed_by = 'other', expires_at = expires_at + 300000 \
                    WHERE message_id = 'late'";
    sqlx::query(takeover).execute(&mut *other).await.unwrap();

    let late = store.renew("late", &token, LEASE).await;
    assert!(matches!(late, Err(StoreError::Unreachable { .. })), "{late:?}");
    assert_eq!(store.renew("in time", &token, LEASE).await, Ok(Fenced::Held));
    let together = tokio::join!(store.renew("late", &token, LEASE), store.renew("in time", &token, LEASE));
    assert!(matches!(together, (Err(StoreError::Unreachable { .. }), Ok(Fenced::Held))), "{together:?}");

    other.commit().await.unwrap();
    assert_eq!(store.renew("late", &token, LEASE).await, Ok(Fenced::Lost));
    assert_eq!(store.renew("in time", &token, LEASE).await, Ok(Fenced::Held));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_renewal_overlooks_no_takeover_in_postgres() {
    needs!(Postgres);
    let (store, pool) = stores::postgres().await;
    a_late_renewal_overlooks_no_takeover(Arc::new(store), pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_renewal_overlooks_no_takeover_in_mariadb() {
    needs!(MariaDb);
    let (store, pool) = stores::mariadb().await;
    a_late_renewal_overlooks_no_takeover(Arc::new(store), pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_a_transaction_has_locked_holds_up_nobody_in_postgres() {
    needs!(Postgres);
    let (store, pool) = stores::postgres().await;
    a_locked_entry_holds_up_nobody(Arc::new(store), pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_that_a_transaction_has_locked_holds_up_nobody_in_mariadb() {
    needs!(MariaDb);
    let (store, pool) = stores::mariadb().await;
    a_locked_entry_holds_up_nobody(Arc::new(store), pool).await;
}
