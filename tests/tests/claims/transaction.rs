//! The confirmation as part of the handler's own transaction.

use acemq::idempotency::{Claim, ClaimStore, Fenced, Token};
use acemq_tests::needs;

use crate::stores::{self, DAY, LEASE};

/// Commits, rolls back and loses; afterwards, there is one effect.
macro_rules! effects_and_confirmation_go_together {
    ($store:expr, $pool:expr) => {{
        let (store, pool) = ($store, $pool);
        sqlx::query("CREATE TABLE effects (n int NOT NULL)").execute(&pool).await.unwrap();
        let (token, other) = (Token::random(), Token::random());
        let claimed = Ok(Claim::Claimed);

        // The handler fails: neither is there.
        assert_eq!(store.claim("a", &token, LEASE).await, claimed);
        let mut transaction = pool.begin().await.unwrap();
        sqlx::query("INSERT INTO effects VALUES (1)").execute(&mut *transaction).await.unwrap();
        assert_eq!(store.confirm_in(&mut transaction, "a", &token, DAY).await, Ok(Fenced::Held));
        transaction.rollback().await.unwrap();
        assert_eq!(store.claim("a", &other, LEASE).await, Ok(Claim::InProgress));

        // It succeeds: both are there.
        let mut transaction = pool.begin().await.unwrap();
        sqlx::query("INSERT INTO effects VALUES (1)").execute(&mut *transaction).await.unwrap();
        assert_eq!(store.confirm_in(&mut transaction, "a", &token, DAY).await, Ok(Fenced::Held));
        transaction.commit().await.unwrap();
        assert_eq!(store.claim("a", &other, LEASE).await, Ok(Claim::Duplicate));

        // Somebody else holds it: the confirmation says so, and the effect is taken back.
        assert_eq!(store.claim("b", &other, LEASE).await, claimed);
        let mut transaction = pool.begin().await.unwrap();
        sqlx::query("INSERT INTO effects VALUES (1)").execute(&mut *transaction).await.unwrap();
        assert_eq!(store.confirm_in(&mut transaction, "b", &token, DAY).await, Ok(Fenced::Lost));
        transaction.rollback().await.unwrap();
        assert_eq!(store.confirm("b", &other, DAY).await, Ok(Fenced::Held));

        // A key that is hashed is the same one in both.
        let long = "x".repeat(300);
        assert_eq!(store.claim(&long, &token, LEASE).await, claimed);
        let mut transaction = pool.begin().await.unwrap();
        assert_eq!(store.confirm_in(&mut transaction, &long, &token, DAY).await, Ok(Fenced::Held));
        transaction.commit().await.unwrap();
        assert_eq!(store.claim(&long, &other, LEASE).await, Ok(Claim::Duplicate));

        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM effects").fetch_one(&pool).await.unwrap();
        assert_eq!(count, 1);
    }};
}

#[tokio::test]
async fn effects_and_confirmation_go_together_in_postgres() {
    needs!(Postgres);
    let (store, pool) = stores::postgres().await;
    effects_and_confirmation_go_together!(store, pool);
}

#[tokio::test]
async fn effects_and_confirmation_go_together_in_mariadb() {
    needs!(MariaDb);
    let (store, pool) = stores::mariadb().await;
    effects_and_confirmation_go_together!(store, pool);
}

#[tokio::test]
async fn effects_and_confirmation_go_together_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let (store, pool) = stores::sqlite(dir.path()).await;
    effects_and_confirmation_go_together!(store, pool);
}
