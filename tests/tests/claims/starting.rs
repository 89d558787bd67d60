//! What keeps an application from starting because of its claim store, and what it says.

use std::time::Duration;

use acemq::{
    App, Error,
    idempotency::{ClaimStore, MemoryStore, sql::SqlStore},
    registry::{Consumer, ConsumerSpec, Idempotent, Registration},
    transport::memory::Memory,
};
use acemq_tests::{
    database::{self, Database, Kind},
    needs,
};
use sqlx::{
    AssertSqlSafe,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use crate::{
    board::{self, Board},
    patchy::Patchy,
    stores,
    tx::{self, Hands},
};

async fn refused(app: App) -> Error {
    match app.transport(Memory::private()).state(Board::new()).state(Hands::new()).start().await {
        Err(error) => error,
        Ok(_) => panic!("an application that ought not to start does"),
    }
}

/// Why an application with this store does not start.
async fn fault(store: impl ClaimStore) -> String {
    match refused(App::new().consumer::<board::plain>().idempotency(store)).await {
        Error::Store(faults) if faults.len() == 1 => {
            let text = Error::Store(faults).to_string();
            assert!(text.starts_with("duplicates cannot be recognised: the claim store "), "{text}");
            text
        }
        other => panic!("a fault of the store is told as {other:?}"),
    }
}

async fn problem(app: App) -> String {
    match refused(app).await {
        Error::Config(problems) => problems.join("; "),
        other => panic!("a mistake in the set-up is told as {other:?}"),
    }
}

#[tokio::test]
async fn a_missing_table_is_told_with_the_statement_that_creates_it() {
    needs!(Postgres, MariaDb);
    let server = database::shared(Kind::Postgres).await;
    let store = SqlStore::postgres(stores::postgres_pool(&server.fresh().await)).pool_to_itself();
    let create = store.create_table_sql();
    let told = fault(store).await;
    assert!(told.contains("does not exist; create it with:") && told.ends_with(&create), "{told}");

    let server = database::shared(Kind::MariaDb).await;
    let store = SqlStore::mysql(stores::mysql_pool(&server.fresh().await)).pool_to_itself();
    let create = store.create_table_sql();
    let told = fault(store).await;
    assert!(told.contains("does not exist; create it with:") && told.ends_with(&create), "{told}");

    let dir = tempfile::tempdir().unwrap();
    let store = SqlStore::connect_sqlite(stores::sqlite_options(dir.path()));
    let create = store.create_table_sql();
    let told = fault(store).await;
    assert!(told.contains("does not exist; create it with:") && told.ends_with(&create), "{told}");
}

#[tokio::test]
async fn a_table_of_another_shape_is_told_with_what_is_wrong() {
    needs!(Postgres, MariaDb);
    let server = database::shared(Kind::Postgres).await;
    let url = server.fresh().await;
    let store = SqlStore::postgres(stores::postgres_pool(&url)).pool_to_itself();
    server.sql(&url, &store.create_table_sql().replace(r#""expires_at" bigint"#, r#""expires_at" integer"#)).await;
    let told = fault(store).await;
    assert!(told.contains("expires_at is integer and not a 64-bit integer"), "{told}");

    let server = database::shared(Kind::MariaDb).await;
    let url = server.fresh().await;
    let store = SqlStore::mysql(stores::mysql_pool(&url)).pool_to_itself();
    server.sql(&url, &store.create_table_sql().replacen(" PRIMARY KEY", "", 1)).await;
    let told = fault(store).await;
    assert!(told.contains("so two claims of one message could both win"), "{told}");

    let dir = tempfile::tempdir().unwrap();
    let (store, pool) = stores::sqlite(dir.path()).await;
    let create = store.create_table_sql();
    let spoiled = create.replace("varchar(255)", "varchar(255) COLLATE NOCASE");
    let again = format!("DROP TABLE acemq_idempotency; {spoiled}");
    sqlx::raw_sql(AssertSqlSafe(again)).execute(&pool).await.unwrap();
    let told = fault(store.pool_to_itself()).await;
    assert!(told.contains("takes different keys for the same one"), "{told}");
}

#[tokio::test]
async fn a_read_only_database_is_told_as_one() {
    needs!(Postgres, MariaDb);
    let url = stores::shared(Kind::Postgres).await.url;
    let pool = stores::postgres_pool(&format!("{url}?options[default_transaction_read_only]=on"));
    let told = fault(SqlStore::postgres(pool).pool_to_itself()).await;
    assert!(told.contains("cannot be used now: the database is read-only"), "{told}");

    let server = Database::start(Kind::MariaDb).await;
    let stored = stores::on(Kind::MariaDb, &server).await;
    server.sql(&stored.url, "CREATE USER plain IDENTIFIED BY 'secret'").await;
    server.sql(&stored.url, "GRANT ALL ON acemq_idempotency TO plain").await;
    server.sql(&stored.url, "SET GLOBAL read_only = 1").await;
    let pool = stores::mysql_pool(&stored.url.replace("root@", "plain:secret@"));
    let told = fault(SqlStore::mysql(pool).pool_to_itself()).await;
    assert!(told.contains("cannot be used now: the database is read-only") && !told.contains("secret"), "{told}");

    let dir = tempfile::tempdir().unwrap();
    stores::sqlite(dir.path()).await;
    let options = stores::sqlite_options(dir.path()).read_only(true);
    let pool = SqlitePoolOptions::new().connect_lazy_with(options);
    let told = fault(SqlStore::sqlite(pool).pool_to_itself()).await;
    assert!(told.contains("cannot be used now: the database is read-only"), "{told}");
}

#[tokio::test]
async fn a_database_that_is_away_is_told_as_such_and_not_with_its_password() {
    needs!(Postgres, MariaDb);
    // Nobody listens there any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let store = SqlStore::postgres(stores::postgres_pool(&format!("postgres://me:secret@127.0.0.1:{port}/x")));
    let told = fault(store.pool_to_itself()).await;
    assert!(told.contains("cannot be used now") && !told.contains("secret"), "{told}");
    let store = SqlStore::mysql(stores::mysql_pool(&format!("mysql://me:secret@127.0.0.1:{port}/x")));
    let told = fault(store.pool_to_itself()).await;
    assert!(told.contains("cannot be used now") && !told.contains("secret"), "{told}");
    let options = SqliteConnectOptions::new().filename("/nowhere/at/all.db");
    let told = fault(SqlStore::connect_sqlite(options)).await;
    assert!(told.contains("unable to open"), "{told}");
}

#[tokio::test]
async fn a_pool_that_the_handlers_can_use_up_is_told_with_the_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let (store, pool) = stores::sqlite(dir.path()).await;
    let told = problem(App::new().consumer::<board::plain>().idempotency(store)).await;
    for part in ["pool of 5 connections", "of which 20 may run at once", "21 connections or more", "pool_to_itself"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // Two consumers, each of which would fit.
    let wide = SqlitePoolOptions::new().max_connections(30).connect_lazy_with(stores::sqlite_options(dir.path()));
    let both = App::new().consumer::<board::plain>().consumer::<board::other>();
    let told = problem(both.idempotency(SqlStore::sqlite(wide.clone()))).await;
    assert!(told.contains("of which 40 may run at once"), "{told}");

    for store in [SqlStore::sqlite(wide), SqlStore::sqlite(pool).pool_to_itself()] {
        let app = App::new().consumer::<board::plain>().idempotency(store).state(Board::new());
        let running = app.transport(Memory::private()).start().await.unwrap();
        assert!(running.close().await.finished);
    }
}

#[tokio::test]
async fn a_store_that_nobody_provides_is_told_by_name() {
    let told = problem(App::new().consumer::<board::named>().idempotency(MemoryStore::new())).await;
    assert!(told.contains("store `orders`, which nobody provides") && told.contains("idempotency_named"), "{told}");
}

#[tokio::test]
async fn a_transaction_without_a_store_for_it_is_told() {
    let bare = problem(App::new().consumer::<tx::without_claims>()).await;
    assert!(bare.contains("takes a `Tx<SQLite>` and is not `idempotent`"), "{bare}");
    let memory = problem(App::new().consumer::<tx::sqlite>().idempotency(MemoryStore::new())).await;
    assert!(memory.contains("its claims are not kept in SQLite"), "{memory}");
    let wrapped = problem(App::new().consumer::<tx::sqlite>().idempotency(Patchy::default())).await;
    assert!(wrapped.contains("its claims are not kept in SQLite"), "{wrapped}");
    let dir = tempfile::tempdir().unwrap();
    let (_, pool) = stores::sqlite(dir.path()).await;
    let own = || SqlStore::connect_sqlite(stores::sqlite_options(dir.path()));
    let told = problem(App::new().consumer::<tx::sqlite>().idempotency(own())).await;
    assert!(told.contains("SqlStore::transactions(pool)"), "{told}");
    let app = App::new().consumer::<tx::sqlite>().idempotency(own().transactions(pool)).state(Hands::new());
    assert!(app.transport(Memory::private()).start().await.unwrap().close().await.finished);
}

/// A consumer that is built by hand, which no macro has checked.
#[derive(Debug)]
struct Forgetful;

impl Consumer for Forgetful {
    const REGISTRATION: Registration = Registration {
        spec: ConsumerSpec {
            retry: acemq::RetryPolicy::fixed(5, Duration::from_hours(12)),
            idempotent: Some(Idempotent { claim: Duration::from_secs(5), ..Idempotent::DEFAULT }),
            ..ConsumerSpec::new("forgetful")
        },
        name: "forgetful",
        ..board::plain::REGISTRATION
    };
}

#[tokio::test]
async fn settings_that_no_macro_has_checked_are_checked_at_the_start() {
    let told = problem(App::new().consumer::<Forgetful>()).await;
    for part in ["`retention` (1d unless set) is shorter than all retries together", "`in_progress_delay`"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_or_is_silent_at_its_check_does_not_hang_the_start() {
    let told = fault(Silent(false)).await;
    assert!(told.contains("no answer within 15s"), "{told}");
    let told = fault(Silent(true)).await;
    assert!(told.contains("it panicked"), "{told}");
}

/// A store that answers nothing.
#[derive(Debug)]
struct Silent(bool);

mod silent {
    use acemq::idempotency::{Claim, ClaimStore, Fenced, StoreError, Token};
    use futures_util::{FutureExt, future::BoxFuture};

    use super::{Duration, Silent};

    type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

    impl Silent {
        fn answer<T: Send>(&self) -> Answer<'_, T> {
            let panics = self.0;
            async move {
                if panics {
                    std::panic::resume_unwind(Box::new("a store that panics"));
                }
                std::future::pending().await
            }
            .boxed()
        }
    }

    impl ClaimStore for Silent {
        fn claim<'a>(&'a self, _: &'a str, _: &'a Token, _: Duration) -> Answer<'a, Claim> {
            self.answer()
        }

        fn confirm<'a>(&'a self, _: &'a str, _: &'a Token, _: Duration) -> Answer<'a, Fenced> {
            self.answer()
        }

        fn renew<'a>(&'a self, _: &'a str, _: &'a Token, _: Duration) -> Answer<'a, Fenced> {
            self.answer()
        }

        fn release<'a>(&'a self, _: &'a str, _: &'a Token) -> Answer<'a, Fenced> {
            self.answer()
        }

        fn purge(&self, _: usize) -> Answer<'_, usize> {
            self.answer()
        }

        fn check(&self) -> Answer<'_, ()> {
            self.answer()
        }
    }
}
