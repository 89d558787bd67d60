//! Handlers whose writes and confirmations commit together, on the embedded broker and on real databases.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use acemq::{
    Ack, App, Context, Running, State, Text, consumer,
    idempotency::{
        Claim, Scope, Token,
        sql::{SqlStore, Tx},
    },
    transport::memory::Memory,
};
use acemq_tests::{
    database::{Database, Kind},
    eventually, needs,
    wait::within,
};
use sqlx::{AssertSqlSafe, MySql, Postgres, Sqlite};
use tokio::sync::{Semaphore, watch};

use crate::{counts::counted, stores};

pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// What a test and its handlers have to do with each other; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Hands {
    begun: watch::Sender<usize>,
    gate: Arc<Semaphore>,
    kept: Arc<Mutex<Vec<tokio::task::JoinHandle<()>>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Hands {
    pub(crate) fn new() -> Self {
        Self {
            begun: watch::Sender::new(0),
            gate: Arc::new(Semaphore::new(0)),
            kept: Arc::default(),
            seen: Arc::default(),
        }
    }

    /// Notes a call of a handler that does not write.
    pub(crate) fn begin(&self, what: &str) {
        self.seen.lock().unwrap().push(what.to_owned());
        self.begun.send_modify(|begun| *begun += 1);
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) async fn wait(&self) {
        self.gate.acquire().await.unwrap().forget();
    }

    /// Waits until so many handlers have written.
    pub(crate) async fn written(&self, count: usize) {
        let mut begun = self.begun.subscribe();
        within(PATIENCE, "a handler", begun.wait_for(|begun| *begun >= count)).await.unwrap();
    }

    pub(crate) fn go(&self) {
        self.gate.add_permits(1);
    }
}

/// Writes, and then does what the message says.
macro_rules! effect {
    ($what:ident, $tx:ident, $hands:ident, $context:ident) => {{
        let text = format!("INSERT INTO effects (id) VALUES ('{}')", $context.envelope().id().unwrap_or_default());
        sqlx::query(AssertSqlSafe(text)).execute(&mut *$tx).await?;
        $hands.begun.send_modify(|begun| *begun += 1);
        match $what.as_str() {
            "fail" if $context.attempt() == 1 => return Ok(Ack::retry("a first attempt fails")),
            "panic" if $context.attempt() == 1 => std::panic::resume_unwind(Box::new("a first attempt panics")),
            "hang" if $context.attempt() == 1 => std::future::pending().await,
            "spoil" if $context.attempt() == 1 => {
                let _ = sqlx::query("SELECT 1 FROM nowhere").execute(&mut *$tx).await;
            }
            "keep" if $context.attempt() == 1 => {
                let gate = Arc::clone(&$hands.gate);
                let kept = tokio::spawn(async move {
                    let _tx = $tx;
                    gate.acquire().await.unwrap().forget();
                });
                $hands.kept.lock().unwrap().push(kept);
            }
            "waits" => $hands.gate.acquire().await.unwrap().forget(),
            _ => {}
        }
        Ok(Ack::accept())
    }};
}

#[consumer(
    queue = "tx.postgres",
    declare = quorum,
    retry = fixed(4, "50ms"),
    timeout = "1m",
    idempotent(claim = "90s", in_progress_delay = "200ms")
)]
pub(crate) async fn postgres(
    Text(what): Text,
    mut tx: Tx<Postgres>,
    State(hands): State<Hands>,
    context: Context,
) -> Result<Ack, sqlx::Error> {
    effect!(what, tx, hands, context)
}

#[consumer(
    queue = "tx.mariadb",
    declare = quorum,
    retry = fixed(4, "50ms"),
    timeout = "1m",
    idempotent(claim = "90s", in_progress_delay = "200ms")
)]
pub(crate) async fn mariadb(
    Text(what): Text,
    mut tx: Tx<MySql>,
    State(hands): State<Hands>,
    context: Context,
) -> Result<Ack, sqlx::Error> {
    effect!(what, tx, hands, context)
}

#[consumer(
    queue = "tx.sqlite",
    declare = quorum,
    retry = fixed(4, "50ms"),
    concurrency = 4,
    timeout = "1s",
    idempotent(claim = "90s", in_progress_delay = "200ms")
)]
pub(crate) async fn sqlite(
    Text(what): Text,
    mut tx: Tx<Sqlite>,
    State(hands): State<Hands>,
    context: Context,
) -> Result<Ack, sqlx::Error> {
    effect!(what, tx, hands, context)
}

#[consumer(queue = "tx.bare", declare = quorum)]
pub(crate) async fn without_claims(Text(_what): Text, _tx: Tx<Sqlite>) {}

#[consumer(queue = "tx.twice", declare = quorum, retry = fixed(2, "10ms"), concurrency = 2, idempotent)]
pub(crate) async fn twice(Text(_what): Text, _one: Tx<Sqlite>, _two: Tx<Sqlite>) {}

pub(crate) const EFFECTS: &str = "CREATE TABLE effects (id varchar(80) NOT NULL)";

/// A running application, its broker and its database.
struct Bench {
    running: Running,
    broker: Memory,
    hands: Hands,
    queue: &'static str,
}

impl Bench {
    async fn start(app: App, queue: &'static str) -> Self {
        let (broker, hands) = (Memory::private(), Hands::new());
        let running = app.transport(broker.clone()).state(hands.clone()).start().await.unwrap();
        Self { running, broker, hands, queue }
    }

    async fn send(&self, name: &str, what: &str) {
        let publication = self.running.publisher().to_queue(self.queue).id(name.to_owned());
        publication.send_raw("text/plain", what.to_owned()).await.unwrap();
    }

    /// Waits until nothing is left in the queue.
    async fn quiet(&self) {
        let queue = self.queue;
        within(PATIENCE, "an empty queue", self.broker.wait_until(move |view| view.depth(queue) == 0)).await;
        within(PATIENCE, "the last settlement", self.running.settled()).await;
    }
}

macro_rules! count {
    ($pool:expr, $name:expr) => {{
        let text = format!("SELECT count(*) FROM effects WHERE id = '{}'", $name);
        sqlx::query_scalar::<_, i64>(AssertSqlSafe(text)).fetch_one($pool).await.unwrap()
    }};
}

/// Whatever a first attempt does, and however often the message comes, its effect is there once.
macro_rules! each_effect_is_there_once {
    ($store:expr, $pool:expr, $consumer:ident, $queue:expr, $own:expr) => {{
        let ((counts, _guard), pool) = (counted(), $pool);
        sqlx::query(EFFECTS).execute(&pool).await.unwrap();
        let bench = Bench::start(App::new().consumer::<$consumer>().idempotency($store.pool_to_itself()), $queue).await;
        let kinds = ["accept", "fail", "panic", $own, "spoil"];
        for what in kinds {
            for _ in 0..3 {
                bench.send(what, what).await;
            }
            if what == "keep" {
                // What keeps the transaction gives it up when the handler has failed for it.
                let account = || bench.running.totals().retried;
                eventually(PATIENCE, "a refused commit", async || if account() >= 3 { Ok(()) } else { Err(account()) })
                    .await;
                bench.hands.go();
            }
            bench.quiet().await;
        }
        for what in kinds {
            assert_eq!(count!(&pool, what), 1, "{what}");
        }
        assert_eq!(bench.running.totals().set_aside(), 0);
        assert_eq!(counts.deliveries("acked"), 5);
        assert_eq!(counts.deliveries("duplicate"), 10);
        assert!(bench.running.close().await.finished);
    }};
}

#[tokio::test]
async fn each_effect_is_there_once_in_postgres() {
    needs!(Postgres);
    let (store, pool) = stores::postgres().await;
    each_effect_is_there_once!(store, pool, postgres, "tx.postgres", "keep");
}

#[tokio::test]
async fn each_effect_is_there_once_in_mariadb() {
    needs!(MariaDb);
    let (store, pool) = stores::mariadb().await;
    each_effect_is_there_once!(store, pool, mariadb, "tx.mariadb", "keep");
}

#[tokio::test]
async fn each_effect_is_there_once_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let (store, pool) = stores::sqlite(dir.path()).await;
    // What is kept would keep every other writer out.
    each_effect_is_there_once!(store, pool, sqlite, "tx.sqlite", "hang");
}

/// While a handler is in its transaction, somebody takes its claim over: the writes are taken back.
macro_rules! writes_of_a_lost_claim_are_rolled_back {
    ($store:expr, $pool:expr, $consumer:ident, $queue:expr) => {{
        let ((counts, _guard), pool) = (counted(), $pool);
        sqlx::query(EFFECTS).execute(&pool).await.unwrap();
        let store = Arc::new($store);
        let theirs = Arc::clone(&store);
        let ours = SqlStore::clone(&store).pool_to_itself();
        let bench = Bench::start(App::new().consumer::<$consumer>().idempotency(ours), $queue).await;
        bench.send("a", "waits").await;
        bench.hands.written(1).await;
        sqlx::query("UPDATE acemq_idempotency SET expires_at = 1").execute(&pool).await.unwrap();
        let (key, token) = (Scope::Queue.key($queue, "a"), Token::random());
        let taken = acemq::idempotency::ClaimStore::claim(&*theirs, &key, &token, stores::LEASE).await;
        assert_eq!(taken, Ok(Claim::Claimed));
        bench.hands.go();
        eventually(PATIENCE, "a claim that was lost", async || {
            let lost = (counts.claims("claim_lost"), counts.deliveries("in_progress"));
            if lost.0 == 1 && lost.1 > 0 { Ok(()) } else { Err(lost) }
        })
        .await;
        assert_eq!(count!(&pool, "a"), 0);
        // Whoever took it over has handled it: there is nothing left to do.
        let confirmed = acemq::idempotency::ClaimStore::confirm(&*theirs, &key, &token, stores::DAY).await;
        assert_eq!(confirmed, Ok(acemq::idempotency::Fenced::Held));
        bench.quiet().await;
        assert_eq!(count!(&pool, "a"), 0);
        assert_eq!((counts.deliveries("acked"), counts.deliveries("duplicate")), (0, 1));
    }};
}

#[tokio::test]
async fn writes_of_a_lost_claim_are_rolled_back_in_postgres() {
    needs!(Postgres);
    let (store, pool) = stores::postgres().await;
    writes_of_a_lost_claim_are_rolled_back!(store, pool, postgres, "tx.postgres");
}

#[tokio::test]
async fn writes_of_a_lost_claim_are_rolled_back_in_mariadb() {
    needs!(MariaDb);
    let (store, pool) = stores::mariadb().await;
    writes_of_a_lost_claim_are_rolled_back!(store, pool, mariadb, "tx.mariadb");
}

/// The database dies under a handler in its transaction; once it is back, the effect is there once.
macro_rules! a_database_that_dies_before_the_commit {
    ($kind:expr, $open:path, $new:expr, $consumer:ident, $queue:expr) => {{
        let server = Database::start($kind).await;
        let url = stores::on($kind, &server).await.url;
        let pool = $open(&url);
        sqlx::query(EFFECTS).execute(&pool).await.unwrap();
        let store = $new(pool.clone()).pool_to_itself();
        let bench = Bench::start(App::new().consumer::<$consumer>().idempotency(store), $queue).await;
        bench.send("a", "waits").await;
        bench.hands.written(1).await;
        server.kill();
        bench.hands.go();
        bench.hands.go();
        let back = bench.running.totals();
        eventually(
            PATIENCE,
            "a failed commit",
            async || {
                if bench.running.in_flight() == 0 { Ok(()) } else { Err(back) }
            },
        )
        .await;
        server.start_again().await;
        // The claim could not be released, and its lease is longer than a test ought to take.
        let _ = sqlx::query("UPDATE acemq_idempotency SET expires_at = 1 WHERE state = 'CLAIMED'").execute(&pool).await;
        bench.quiet().await;
        assert_eq!(count!(&pool, "a"), 1);
        assert_eq!(bench.running.totals().set_aside(), 0);
    }};
}

#[tokio::test]
async fn a_postgres_that_dies_before_the_commit_leaves_one_effect() {
    needs!(Postgres);
    a_database_that_dies_before_the_commit!(
        Kind::Postgres,
        stores::postgres_pool,
        SqlStore::postgres,
        postgres,
        "tx.postgres"
    );
}

#[tokio::test]
async fn a_mariadb_that_dies_before_the_commit_leaves_one_effect() {
    needs!(MariaDb);
    a_database_that_dies_before_the_commit!(Kind::MariaDb, stores::mysql_pool, SqlStore::mysql, mariadb, "tx.mariadb");
}

#[tokio::test]
async fn a_transaction_without_an_id_or_a_second_one_is_a_mistake_that_no_retry_helps() {
    let dir = tempfile::tempdir().unwrap();
    let (store, pool) = stores::sqlite(dir.path()).await;
    sqlx::query(EFFECTS).execute(&pool).await.unwrap();
    let store = store.pool_to_itself();
    let app = App::new().consumer::<sqlite>().consumer::<twice>().idempotency(store);
    let (broker, hands) = (Memory::private(), Hands::new());
    let running = app.transport(broker.clone()).state(hands).start().await.unwrap();
    running.publisher().to_queue("tx.twice").id("a").send_raw("text/plain", "accept").await.unwrap();
    let bare = acemq::transport::Outgoing {
        exchange: String::new(),
        routing_key: "tx.sqlite".to_owned(),
        mandatory: true,
        properties: acemq::envelope::Properties::default(),
        body: "accept".into(),
    };
    assert_eq!(broker.publish(bare), Ok(acemq::transport::Routing::Routed));
    let letters = |queue: &'static str| broker.wait_until(move |view| view.depth(queue) == 1);
    within(PATIENCE, "a dead letter", letters("tx.twice.dlq")).await;
    within(PATIENCE, "a dead letter", letters("tx.sqlite.dlq")).await;
    let reason = |queue| {
        let letter = broker.messages(queue).remove(0);
        letter.properties.headers["x-acemq-error"].as_text().unwrap().to_owned()
    };
    assert!(reason("tx.twice.dlq").contains("this one takes two"), "{}", reason("tx.twice.dlq"));
    assert!(reason("tx.sqlite.dlq").contains("no id"), "{}", reason("tx.sqlite.dlq"));
}
