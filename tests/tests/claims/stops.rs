//! A database that stops at each moment of a message, under an application on the embedded broker.

use std::time::Duration;

use acemq::{Ack, App, Context, Running, State, Text, consumer, transport::memory::Memory};
use acemq_tests::{
    database::{Database, Kind},
    eventually, needs,
    wait::within,
};

use crate::{
    counts::{Counts, counted},
    stores,
    tx::{Hands, PATIENCE},
};

#[consumer(
    queue = "stops",
    declare = quorum,
    retry = fixed(4, "100ms"),
    idempotent(claim = "4s", in_progress_delay = "300ms")
)]
async fn stops(Text(what): Text, State(hands): State<Hands>, context: Context) -> Ack {
    hands.begin(&format!("{} {}", context.envelope().id().unwrap_or_default(), context.attempt()));
    match what.as_str() {
        "waits" => hands.wait().await,
        "fails" if context.attempt() == 1 => {
            hands.wait().await;
            return Ack::retry("a first attempt fails");
        }
        _ => {}
    }
    Ack::accept()
}

struct Scene {
    server: Database,
    running: Running,
    broker: Memory,
    hands: Hands,
    counts: &'static Counts,
}

impl Scene {
    async fn send(&self, name: &str, what: &'static str) {
        self.running.publisher().to_queue("stops").id(name).send_raw("text/plain", what).await.unwrap();
    }

    async fn quiet(&self) {
        within(PATIENCE, "an empty queue", self.broker.wait_until(|view| view.depth("stops") == 0)).await;
        within(PATIENCE, "the last settlement", self.running.settled()).await;
    }

    async fn claims(&self, outcome: &str, least: u64) {
        eventually(PATIENCE, outcome, async || {
            let counted = self.counts.claims(outcome);
            if counted >= least { Ok(()) } else { Err(counted) }
        })
        .await;
    }

    /// What was handled so far.
    fn handled(&self) -> Vec<String> {
        self.hands.seen()
    }

    async fn is_a_duplicate(&self, name: &str) {
        let (before, calls) = (self.counts.deliveries("duplicate"), self.handled().len());
        self.send(name, "accept").await;
        self.quiet().await;
        assert_eq!((self.counts.deliveries("duplicate"), self.handled().len()), (before + 1, calls), "{name}");
    }
}

async fn nothing_is_lost_whenever_a_database_stops(kind: Kind) {
    let (counts, _guard) = counted();
    let server = Database::start(kind).await;
    let stored = stores::on(kind, &server).await;
    let (broker, hands) = (Memory::private(), Hands::new());
    let app = App::new().consumer::<stops>().idempotency(stores::roomy(kind, &stored.url)).state(hands.clone());
    let running = app.transport(broker.clone()).start().await.unwrap();
    let scene = Scene { server, running, broker, hands, counts };

    // At the claim: no handler runs, no attempt is spent, and the message is still there.
    scene.server.stop().await;
    scene.send("claim", "accept").await;
    scene.claims("store_unreachable", 1).await;
    assert!(scene.handled().is_empty());
    assert_eq!(scene.broker.depth("stops"), 1);
    scene.server.start_again().await;
    scene.quiet().await;
    assert_eq!(scene.handled(), ["claim 1"]);
    scene.is_a_duplicate("claim").await;

    // During the handler: what is back before its lease ends costs nothing.
    scene.send("during", "waits").await;
    scene.hands.written(2).await;
    scene.server.kill();
    scene.server.start_again().await;
    scene.hands.go();
    scene.quiet().await;
    scene.is_a_duplicate("during").await;

    // At the confirmation: it is tried a few times, and the message is accepted: a duplicate may run, nothing is lost.
    scene.send("confirm", "waits").await;
    scene.hands.written(3).await;
    scene.server.kill();
    scene.hands.go();
    scene.claims("confirm_failed", 1).await;
    scene.quiet().await;
    scene.server.start_again().await;

    // At the release: the next attempt waits until the lease ends, and is the second one all the same.
    scene.send("release", "fails").await;
    scene.hands.written(4).await;
    scene.server.kill();
    scene.hands.go();
    scene.claims("release_failed", 1).await;
    scene.server.start_again().await;
    scene.quiet().await;
    assert_eq!(scene.handled(), ["claim 1", "during 1", "confirm 1", "release 1", "release 2"]);
    scene.is_a_duplicate("release").await;
    assert_eq!(scene.running.totals().set_aside(), 0);
    assert!(scene.running.close().await.finished);
}

#[tokio::test]
async fn nothing_is_lost_whenever_postgres_stops() {
    needs!(Postgres);
    nothing_is_lost_whenever_a_database_stops(Kind::Postgres).await;
}

#[tokio::test]
async fn nothing_is_lost_whenever_mariadb_stops() {
    needs!(MariaDb);
    nothing_is_lost_whenever_a_database_stops(Kind::MariaDb).await;
}

/// In real time, on each database: the lease lives by its renewals, and ends without them.
async fn a_handler_outlives_its_lease(kind: Kind) {
    let (counts, _guard) = counted();
    let stored = stores::shared(kind).await;
    let (broker, hands) = (Memory::private(), Hands::new());
    let app = App::new().consumer::<stops>().idempotency(stores::roomy(kind, &stored.url)).state(hands.clone());
    let running = app.transport(broker.clone()).start().await.unwrap();
    let scene_send = running.publisher();
    for _ in 0..2 {
        scene_send.to_queue("stops").id("long").send_raw("text/plain", "waits").await.unwrap();
    }
    hands.written(1).await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(hands.seen(), ["long 1"]);
    assert!(counts.deliveries("in_progress") > 3);
    hands.go();
    within(PATIENCE, "an empty queue", broker.wait_until(|view| view.depth("stops") == 0)).await;
    assert_eq!((hands.seen().len(), counts.claims("lease_lost")), (1, 0));
    assert!(running.close().await.finished);
}

#[tokio::test]
async fn a_handler_three_times_its_lease_runs_alone_over_postgres() {
    needs!(Postgres);
    a_handler_outlives_its_lease(Kind::Postgres).await;
}

#[tokio::test]
async fn a_handler_three_times_its_lease_runs_alone_over_mariadb() {
    needs!(MariaDb);
    a_handler_outlives_its_lease(Kind::MariaDb).await;
}
