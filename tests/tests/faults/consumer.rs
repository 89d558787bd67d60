//! The life of a consumer: queues that are deleted, channels that are closed, streams that end, and floods.

use std::time::Duration;

use acemq::{
    Ack,
    envelope::{Table, Value},
    health::Status,
    idempotency::{Claim, ClaimStore, Fenced, StoreError, Token},
    topology::{DEAD_LETTER_EXCHANGE, Declaration},
    transport::memory::Memory,
};
use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::Instant;

use super::{
    consumers,
    scene::{LATEST, Scene, Script, app},
};

fn declare(broker: &Memory, queue: &str) {
    broker.declare(&Declaration::Queue { name: queue.to_owned(), arguments: Table::new() }).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_queue_shows_within_a_second_and_is_consumed_again_once_it_is_back() {
    let script = Script::accepts();
    let broker = Memory::private();
    declare(&broker, "theirs");
    let scene = Scene::over(&broker, broker.clone(), app(&script).consumer::<consumers::theirs>()).await;
    broker.delete_queue("theirs");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let health = scene.running.health().await;
    assert_eq!((health.status, health.consumers[0].status), (Status::Degraded, Status::Degraded));
    assert!(health.consumers[0].last_error.as_deref().unwrap().contains("`theirs`"), "{health:?}");
    tokio::time::sleep(Duration::from_hours(1)).await;
    declare(&broker, "theirs");
    scene.put("theirs", "a");
    script.called(1, Duration::from_secs(31)).await;
    assert_eq!(scene.running.health().await.status, Status::Up);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_queue_that_its_consumer_declares_is_back_at_once_with_its_bindings() {
    let script = Script::new(async |call, _| if call.attempt == 1 { Err("no".to_owned()) } else { Ok(Ack::accept()) });
    let scene = Scene::start(app(&script).consumer::<consumers::long>()).await;
    let before = scene.broker.declarations();
    scene.broker.delete_queue("long");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(scene.broker.declarations(), before);
    // The way home from the rung is one of them.
    scene.put("long", "a");
    script.called(2, Duration::from_secs(61)).await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_goes_without_a_word_is_missed_and_consumed_again() {
    let script = Script::accepts();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    scene.broker.lose_queue("short");
    tokio::time::sleep(Duration::from_secs(12)).await;
    let health = scene.running.health().await;
    assert_eq!((health.consumers[0].resubscribed, health.status), (1, Status::Up));
    scene.put("short", "a");
    script.called(1, Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_the_broker_cancels_subscribes_again() {
    let script = Script::accepts();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    scene.broker.cancel_consumers("short");
    scene.put("short", "a");
    script.called(1, Duration::from_secs(1)).await;
    let health = scene.running.health().await;
    assert_eq!((health.consumers[0].resubscribed, health.status), (1, Status::Up));
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_the_broker_closes_is_replaced_and_its_neighbours_go_on() {
    let script = Script::new(async |_, _| {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(Ack::accept())
    });
    let scene = Scene::start(app(&script).consumer::<consumers::short>().consumer::<consumers::long>()).await;
    scene.put("short", "a");
    scene.put("long", "b");
    script.called(2, LATEST).await;
    scene.broker.close_channels("short");
    scene.empty("short").await;
    scene.empty("long").await;
    scene.running.settled().await;
    let health = scene.running.health().await;
    let again: Vec<u64> = health.consumers.iter().map(|consumer| consumer.resubscribed).collect();
    assert_eq!(again, [1, 0]);
    assert_eq!((scene.running.totals().lost, scene.running.totals().acked), (1, 2));
    assert_eq!(scene.broker.view(|view| view.connections()), 2);
}

#[tokio::test(start_paused = true)]
async fn no_more_is_taken_from_a_long_queue_than_the_prefetch() {
    let script = Script::new(async |_, _| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Ack::accept())
    });
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    for number in 0..10_000 {
        scene.put("short", &number.to_string());
    }
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(777)).await;
        assert!(scene.broker.unacked("short") <= 20);
        assert!(scene.running.in_flight() + scene.running.held() <= 20);
    }
}

/// How often a handler ran, or a message was delivered, within ten minutes.
async fn deliveries_of_ten_minutes(scene: &Scene) -> u64 {
    scene.put("endless", "a");
    tokio::time::sleep(Duration::from_mins(10)).await;
    scene.running.totals().delivered
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_always_fails_does_not_run_at_full_speed() {
    let scene = Scene::start(app(&Script::fails()).consumer::<consumers::endless>()).await;
    let deliveries = deliveries_of_ten_minutes(&scene).await;
    assert!((100..=130).contains(&deliveries), "{deliveries}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_always_releases_does_not_run_at_full_speed() {
    let script = Script::new(async |_, _| Ok(Ack::release()));
    let scene = Scene::start(app(&script).consumer::<consumers::endless>()).await;
    let deliveries = deliveries_of_ten_minutes(&scene).await;
    assert!((100..=130).contains(&deliveries), "{deliveries}");
    assert!(script.attempts().iter().all(|attempt| *attempt == 1));
    assert_eq!(scene.broker.depth("endless"), 1, "a quorum queue would have given it up after twenty returns");
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_finds_no_queue_does_not_make_the_message_go_round_at_full_speed() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::once>()).await;
    // What is declared again is deleted again.
    let broker = scene.broker.clone();
    let vandal = tokio::spawn(async move {
        loop {
            broker.delete_queue("once.dlq");
            broker.wait_until(|view| view.exists("once.dlq")).await;
        }
    });
    scene.put("once", "a");
    tokio::time::sleep(Duration::from_mins(10)).await;
    let deliveries = scene.running.totals().delivered;
    assert!((10..=130).contains(&deliveries), "{deliveries}");
    vandal.abort();
    assert_eq!(scene.lying("once.dlq", 1).await.len(), 1);
}

/// A store that always fails in one way.
#[derive(Debug, Clone, Copy)]
enum Broken {
    Away,
    Panics,
}

impl Broken {
    fn fail<T>(self) -> BoxFuture<'static, Result<T, StoreError>> {
        async move {
            match self {
                Self::Away => Err(StoreError::Unreachable { why: "it is away".to_owned() }),
                Self::Panics => std::panic::resume_unwind(Box::new("a store that panics")),
            }
        }
        .boxed()
    }
}

impl ClaimStore for Broken {
    fn claim<'a>(&'a self, _: &'a str, _: &'a Token, _: Duration) -> BoxFuture<'a, Result<Claim, StoreError>> {
        self.fail()
    }

    fn confirm<'a>(&'a self, _: &'a str, _: &'a Token, _: Duration) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.fail()
    }

    fn renew<'a>(&'a self, _: &'a str, _: &'a Token, _: Duration) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.fail()
    }

    fn release<'a>(&'a self, _: &'a str, _: &'a Token) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.fail()
    }

    fn purge(&self, _: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.fail()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        async { Ok(()) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_or_panics_neither_runs_nor_loses_the_message_nor_spins() {
    for store in [Broken::Away, Broken::Panics] {
        let script = Script::accepts();
        let scene = Scene::start(app(&script).consumer::<consumers::claimed>().idempotency(store)).await;
        let mut properties = super::scene::headers(&[]);
        properties.message_id = Some("the-id".to_owned());
        super::scene::put(&scene.broker, "claimed", "a", properties);
        tokio::time::sleep(Duration::from_mins(10)).await;
        let deliveries = scene.running.totals().delivered;
        assert!((50..=130).contains(&deliveries), "{store:?}: {deliveries}");
        assert_eq!((script.calls().len(), scene.broker.depth("claimed")), (0, 1), "{store:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_in_the_middle_of_an_outage_ends_in_time() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    scene.put("short", "a");
    script.called(1, LATEST).await;
    scene.broker.refuse_connections(true);
    scene.broker.cut();
    tokio::time::sleep(Duration::from_mins(3)).await;
    let began = Instant::now();
    let handle = scene.running.handle();
    assert!(scene.running.close().await.finished);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let health = handle.health().await;
    assert_eq!((health.consuming.open, health.publishing.open, health.status), (false, false, Status::Down));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_gone_when_the_broker_is_back_is_declared_again_and_consumed() {
    let script = Script::accepts();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    let before = scene.broker.declarations();
    scene.broker.refuse_connections(true);
    scene.broker.cut();
    for queue in ["short", "short.dlq", "short.parked"] {
        scene.broker.delete_queue(queue);
    }
    scene.broker.delete_exchange("acemq.dlx");
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene.broker.refuse_connections(false);
    let there = scene.broker.wait_until(|view| view.consumers("short") == 1);
    tokio::time::timeout(Duration::from_secs(31), there).await.unwrap();
    assert_eq!(scene.broker.declarations(), before);
    scene.put("short", "a");
    script.called(1, LATEST).await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_the_consumer_keeps_no_slot_from_others_and_a_place_of_the_prefetch_for_its_time_at_most() {
    let script = Script::new(async |call, _| match call.body.as_str() {
        "bad" => Err("no".to_owned()),
        _ => Ok(Ack::accept()),
    });
    let scene = Scene::start(app(&script).consumer::<consumers::narrow>()).await;
    let began = Instant::now();
    for body in ["bad", "bad", "good"] {
        scene.put("narrow", body);
    }
    script.called(3, LATEST).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let health = scene.running.health().await;
    assert_eq!((health.consumers[0].present.waiting, health.status), (2, Status::Up));
    // With a third one the prefetch is full of waits.
    for body in ["bad", "good"] {
        scene.put("narrow", body);
    }
    script.called(4, LATEST).await;
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert_eq!(script.calls().len(), 4);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(script.calls().iter().filter(|call| call.body == "good").count() == 2, "{:?}", script.calls());
}

/// Three processes die with five messages in hand, of a queue whose owner allows two returns.
#[tokio::test(start_paused = true)]
async fn what_the_broker_itself_gives_up_lies_in_the_dead_letter_queue() {
    let broker = Memory::private();
    let arguments = [
        ("x-queue-type", Value::from("quorum")),
        ("x-delivery-limit", Value::I32(2)),
        ("x-dead-letter-exchange", Value::from(DEAD_LETTER_EXCHANGE)),
        ("x-dead-letter-routing-key", Value::from("theirs.dlq")),
    ];
    let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    broker.declare(&Declaration::Queue { name: "theirs".to_owned(), arguments }).unwrap();
    let script = Script::new(async |_, _| std::future::pending().await);
    let scene = Scene::over(&broker, broker.clone(), app(&script).consumer::<consumers::theirs>()).await;
    for body in ["1", "2", "3", "4", "5"] {
        scene.put("theirs", body);
    }
    for deaths in 1..=3 {
        script.called(5 * deaths, LATEST).await;
        broker.cut();
    }
    let dead = scene.lying("theirs.dlq", 5).await;
    let mut bodies: Vec<&[u8]> = dead.iter().map(|message| &*message.body).collect();
    bodies.sort_unstable();
    assert_eq!(bodies, [b"1", b"2", b"3", b"4", b"5"]);
    assert!(dead.iter().all(|message| message.properties.headers.contains_key("x-death")));
}
