//! A purge on a server that knows little of its table.

use acemq::idempotency::{ClaimStore as _, sql::SqlStore};
use acemq_tests::{database::Kind, needs};
use sqlx::postgres::PgPoolOptions;

use crate::stores;

/// As in a new service: nothing ends for as long as the retention lasts, and then a day's worth of entries does at once.
#[tokio::test]
async fn a_purge_keeps_its_limit_when_nothing_has_ended_before() {
    needs!(Postgres);
    let url = stores::shared(Kind::Postgres).await.url;
    // Each connection plans for itself.
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy(&url).unwrap();
    let store = SqlStore::postgres(pool.clone());
    let run = async |statement| sqlx::raw_sql(statement).execute(&pool).await.unwrap();
    run("INSERT INTO acemq_idempotency SELECT 'k' || n, 'CONFIRMED', 't', 1, 9000000000000000 \
         FROM generate_series(1, 20000) AS n")
    .await;
    run("ANALYZE acemq_idempotency").await;
    // The plan of the sixth is kept.
    for _ in 0..7 {
        assert_eq!(store.purge(500).await, Ok(0));
    }
    run("UPDATE acemq_idempotency SET expires_at = 2 WHERE message_id LIKE 'k1%'").await;
    for _ in 0..3 {
        assert_eq!(store.purge(500).await, Ok(500));
    }
}
