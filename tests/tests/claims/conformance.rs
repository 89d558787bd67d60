//! One set of rules, on every store.

use std::sync::Arc;

use acemq::idempotency::{
    MemoryStore,
    conformance::{Race, claim_store_conformance},
    sql::SqlStore,
};
use acemq_tests::{database::Kind, needs};

use crate::stores;

/// For stores that differ from another in their pool or their statements only.
const SMALL: Race = Race::new(16, 1_000);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_store_conforms() {
    claim_store_conformance(Arc::new(MemoryStore::new()), Race::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_conforms() {
    needs!(Postgres);
    let stored = stores::shared(Kind::Postgres).await;
    claim_store_conformance(stored.store, Race::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_conforms() {
    needs!(MariaDb);
    let stored = stores::shared(Kind::MariaDb).await;
    claim_store_conformance(stored.store, Race::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_conforms() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = stores::sqlite(dir.path()).await;
    claim_store_conformance(Arc::new(store), Race::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_statements_for_mysql_conform() {
    needs!(MariaDb);
    let (store, _) = stores::mariadb().await;
    claim_store_conformance(Arc::new(store.without_extensions()), SMALL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_conforms_over_a_pool_of_its_own() {
    needs!(Postgres);
    let url = stores::shared(Kind::Postgres).await.url;
    let store = SqlStore::connect_postgres(url.parse().unwrap());
    claim_store_conformance(Arc::new(store), SMALL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_conforms_over_a_pool_of_its_own() {
    needs!(MariaDb);
    let url = stores::shared(Kind::MariaDb).await.url;
    let store = SqlStore::connect_mysql(url.parse().unwrap());
    claim_store_conformance(Arc::new(store), SMALL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_conforms_over_a_connection_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    // It creates the table.
    stores::sqlite(dir.path()).await;
    let store = SqlStore::connect_sqlite(stores::sqlite_options(dir.path()));
    claim_store_conformance(Arc::new(store), SMALL).await;
}
