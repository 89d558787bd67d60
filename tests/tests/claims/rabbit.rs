//! End to end on RabbitMQ: copies, cut connections and a killed process, with claims in PostgreSQL.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use acemq::{
    App, Context, Running, State, Text, consumer,
    idempotency::sql::{SqlStore, Tx},
    transport::rabbitmq::{Config, RabbitMq},
};
use acemq_tests::{
    amqp::Client,
    database::Kind,
    eventually, needs, process,
    proxy::Proxy,
    rabbitmq::{self, Version},
    wait::within,
};
use lapin::BasicProperties;
use sqlx::{AssertSqlSafe, PgPool, Postgres};
use tokio::sync::{mpsc, oneshot};

use crate::{
    stores,
    tx::{EFFECTS, PATIENCE},
};

/// What handlers need: a way to cut their own connection, and the calls that there were.
#[derive(Debug, Clone)]
struct Field {
    cutter: mpsc::UnboundedSender<oneshot::Sender<()>>,
    calls: Arc<Mutex<BTreeMap<String, Vec<u32>>>>,
    cuts: Arc<AtomicUsize>,
}

impl Field {
    fn new() -> (Self, mpsc::UnboundedReceiver<oneshot::Sender<()>>) {
        let (cutter, wanted) = mpsc::unbounded_channel();
        (Self { cutter, calls: Arc::default(), cuts: Arc::default() }, wanted)
    }

    /// Notes a call, and cuts every connection of the application if the message says so: the handler has done its work, and
    /// its message cannot be acknowledged.
    async fn called(&self, what: &str, context: &Context) {
        let id = context.envelope().id().unwrap_or_default().to_owned();
        self.calls.lock().unwrap().entry(id).or_default().push(context.attempt());
        if what == "cut" {
            self.cuts.fetch_add(1, Ordering::SeqCst);
            let (cut, done) = oneshot::channel();
            self.cutter.send(cut).unwrap();
            done.await.unwrap();
        }
    }
}

fn insert(context: &Context) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("INSERT INTO effects (id) VALUES ('{}')", context.envelope().id().unwrap_or_default()))
}

#[consumer(
    queue = "rabbit.tx",
    declare = quorum,
    retry = fixed(5, "200ms"),
    timeout = "30s",
    idempotent(claim = "1m", in_progress_delay = "200ms")
)]
async fn transactional(
    Text(what): Text,
    mut tx: Tx<Postgres>,
    State(field): State<Field>,
    context: Context,
) -> Result<(), sqlx::Error> {
    sqlx::query(insert(&context)).execute(&mut *tx).await?;
    field.called(&what, &context).await;
    Ok(())
}

#[consumer(
    queue = "rabbit.plain",
    declare = quorum,
    retry = fixed(5, "200ms"),
    timeout = "30s",
    idempotent(claim = "1m", in_progress_delay = "200ms")
)]
async fn plain(
    Text(what): Text,
    State(pool): State<PgPool>,
    State(field): State<Field>,
    context: Context,
) -> Result<(), sqlx::Error> {
    sqlx::query(insert(&context)).execute(&pool).await?;
    field.called(&what, &context).await;
    Ok(())
}

const QUEUES: [&str; 2] = ["rabbit.tx", "rabbit.plain"];

/// So many messages for each queue.
const MESSAGES: usize = 60;

fn pool(url: &str) -> PgPool {
    sqlx::postgres::PgPoolOptions::new().max_connections(30).connect_lazy(url).unwrap()
}

async fn start(url: &str, app: App) -> Running {
    let config = Config::new(url).heartbeat(Duration::from_secs(2)).connect_timeout(Duration::from_secs(5));
    within(PATIENCE, "a start", app.transport(RabbitMq::with(config).unwrap()).start()).await.unwrap()
}

async fn effects(pool: &PgPool) -> BTreeMap<String, i64> {
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT id, count(*) FROM effects GROUP BY id").fetch_all(pool).await.unwrap();
    rows.into_iter().collect()
}

async fn publish(client: &Client, queue: &str, id: &str, what: &str) {
    client.publish("", queue, what.as_bytes(), BasicProperties::default().with_message_id(id.into())).await;
}

/// Every message is published up to three times, and every twentieth one has its connection cut after its handler; with
/// more, what takes its time are the waits between connections.
async fn each_message_has_its_effect_once(version: Version) {
    let node = rabbitmq::shared(version).await;
    let url = node.url_for("guest", "guest", &rabbitmq::vhost(node).await);
    let database = stores::shared(Kind::Postgres).await.url;
    let pool = pool(&database);
    sqlx::query(EFFECTS).execute(&pool).await.unwrap();
    let proxy = Proxy::start(&url).await;
    let (field, mut wanted) = Field::new();
    let cutter = async {
        while let Some(cut) = wanted.recv().await {
            proxy.reset().await;
            let _ = cut.send(());
        }
    };
    let store = SqlStore::connect_postgres(database.parse().unwrap()).transactions(pool.clone());
    let app = || {
        let app = App::new().consumer::<transactional>().consumer::<plain>().idempotency(store.clone());
        app.state(field.clone()).state(pool.clone())
    };
    let running = start(proxy.url(), app()).await;
    let work = all_effects(&url, &pool, &proxy);
    let expected = tokio::select! {
        expected = work => expected,
        () = cutter => panic!("the handlers are gone"),
    };
    // Deliveries whose acknowledgement was cut come again, and change nothing; what was on its way at a close is seen after it.
    let client = Client::connect(&url).await;
    let mut running = Some(running);
    eventually(3 * PATIENCE, "queues without a message", async || {
        let closing = match running.take() {
            Some(running) => running,
            None => start(&url, app()).await,
        };
        empty(&client).await;
        within(PATIENCE, "the last settlement", closing.settled()).await;
        let drained = closing.close().await;
        assert!(drained.finished, "{drained}");
        let mut left = Vec::new();
        for queue in QUEUES {
            left.push(client.ready(queue).await);
            assert_eq!(client.ready(&format!("{queue}.dlq")).await, Some(0));
        }
        if left == [Some(0); 2] { Ok(()) } else { Err(left) }
    })
    .await;
    assert_eq!(effects(&pool).await, expected);
    assert!(field.cuts.load(Ordering::SeqCst) >= 6);
    let calls = field.calls.lock().unwrap().clone();
    let again: Vec<_> = calls.iter().filter(|(_, attempts)| attempts.len() > 1).collect();
    assert!(again.is_empty(), "at most once within a lease: {again:?}");
}

async fn empty(client: &Client) {
    for queue in QUEUES {
        eventually(3 * PATIENCE, "an empty queue", async || {
            let ready = client.ready(queue).await;
            if ready == Some(0) { Ok(()) } else { Err(ready) }
        })
        .await;
    }
}

/// Publishes every message, and waits until each has had its effect; says what is to be found then.
async fn all_effects(url: &str, pool: &PgPool, proxy: &Proxy) -> BTreeMap<String, i64> {
    // Past the proxy, so that what is published is not cut.
    let client = Client::connect(url).await;
    let mut expected = BTreeMap::new();
    for number in 0..MESSAGES {
        for queue in QUEUES {
            let id = format!("{queue}-{number}");
            let what = if number % 20 == 3 { "cut" } else { "accept" };
            for _ in 0..=number % 3 {
                publish(&client, queue, &id, what).await;
            }
            expected.insert(id, 1);
        }
        if number == MESSAGES / 2 {
            // Somewhere in the middle of whatever goes on.
            proxy.reset().await;
        }
    }
    let settled = async || {
        let found = effects(pool).await;
        let missing: Vec<_> = expected.keys().filter(|id| !found.contains_key(*id)).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("missing: {missing:?}")) }
    };
    eventually(3 * PATIENCE, "every effect", settled).await;
    expected
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_message_has_its_effect_once_on_rabbitmq_3() {
    needs!(RabbitMq3, Postgres);
    each_message_has_its_effect_once(Version::V3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_message_has_its_effect_once_on_rabbitmq_4() {
    needs!(RabbitMq4, Postgres);
    each_message_has_its_effect_once(Version::V4).await;
}

/// Writes, and then dies or goes on.
#[consumer(
    queue = "rabbit.killed",
    declare = quorum,
    retry = fixed(5, "200ms"),
    idempotent(claim = "4s", in_progress_delay = "300ms")
)]
async fn killed(
    Text(_what): Text,
    mut tx: Tx<Postgres>,
    State(Dies(dies)): State<Dies>,
    State(field): State<Field>,
    context: Context,
) -> Result<(), sqlx::Error> {
    sqlx::query(insert(&context)).execute(&mut *tx).await?;
    field.called("", &context).await;
    if dies {
        println!("in the handler");
        std::future::pending::<()>().await;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Dies(bool);

fn one_consumer(database: &str, field: &Field, dies: bool) -> App {
    let store = SqlStore::postgres(pool(database));
    App::new().consumer::<killed>().idempotency(store).state(field.clone()).state(Dies(dies))
}

/// A process that is killed in its handler.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs in a process of its own, which another test starts"]
async fn dies_in_the_handler() {
    let (url, database) = (std::env::var("CLAIMS_BROKER").unwrap(), std::env::var("CLAIMS_URL").unwrap());
    let _running = start(&url, one_consumer(&database, &Field::new().0, true)).await;
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_a_killed_process_runs_once_its_lease_ends() {
    needs!(RabbitMq4, Postgres);
    let node = rabbitmq::shared(Version::V4).await;
    let url = node.url_for("guest", "guest", &rabbitmq::vhost(node).await);
    let database = stores::shared(Kind::Postgres).await.url;
    let pool = pool(&database);
    sqlx::query(EFFECTS).execute(&pool).await.unwrap();
    let child = process::Builder::test("rabbit::dies_in_the_handler");
    let mut child = child.env("CLAIMS_BROKER", &url).env("CLAIMS_URL", &database).start();
    let client = Client::connect(&url).await;
    eventually(PATIENCE, "the queue", async || {
        let consumers = client.consumers("rabbit.killed").await;
        if consumers == Some(1) { Ok(()) } else { Err(consumers) }
    })
    .await;
    publish(&client, "rabbit.killed", "a", "anything").await;
    child.line("in the handler", PATIENCE).await;
    child.kill();
    child.ended(PATIENCE).await;

    let (field, _) = Field::new();
    let running = start(&url, one_consumer(&database, &field, false)).await;
    eventually(PATIENCE, "the effect", async || {
        let found = effects(&pool).await;
        if found.get("a") == Some(&1) { Ok(()) } else { Err(found) }
    })
    .await;
    within(PATIENCE, "the last settlement", running.settled()).await;
    let totals = running.totals();
    assert!(totals.in_progress > 0, "it waited for the lease of the dead: {totals:?}");
    assert_eq!(field.calls.lock().unwrap().get("a"), Some(&vec![1]), "the wait spent no attempt");
    assert_eq!(effects(&pool).await.get("a"), Some(&1));
    assert!(running.close().await.finished);
}
