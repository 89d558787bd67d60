//! Connections that are lost, refused, blocked, or that end without a word.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use acemq::{
    Ack, SendError,
    health::Status,
    topology::Declaration,
    transport::{
        Channel, ConnectError, Connection, ConnectionState, DeclareError, Lane, Outgoing, PublishError, Role, Routing,
        Settled, Subscribe, Subscription, Transport, Verdict, memory::Memory,
    },
};
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use tokio::{sync::watch, time::Instant};

use super::{
    consumers,
    scene::{LATEST, Scene, Script, app},
};

/// The embedded broker behind a client library with faults: no stream of deliveries ever ends, and no close of a channel.
#[derive(Debug)]
struct Forgetful {
    broker: Memory,
    connected: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct ForgetfulConnection(Arc<dyn Connection>);

impl Transport for Forgetful {
    fn name(&self) -> &'static str {
        "forgetful"
    }

    fn address(&self) -> String {
        self.broker.address()
    }

    fn connect(&self, role: Role) -> BoxFuture<'_, Result<Arc<dyn Connection>, ConnectError>> {
        self.connected.fetch_add(1, Ordering::SeqCst);
        async move { Ok(Arc::new(ForgetfulConnection(self.broker.connect(role).await?)) as Arc<dyn Connection>) }
            .boxed()
    }
}

impl Connection for ForgetfulConnection {
    fn declare<'a>(&'a self, wanted: &'a Declaration) -> BoxFuture<'a, Result<(), DeclareError>> {
        self.0.declare(wanted)
    }

    fn subscribe<'a>(&'a self, wanted: &'a Subscribe) -> BoxFuture<'a, Result<Subscription, DeclareError>> {
        async move {
            let Subscription { deliveries, channel } = self.0.subscribe(wanted).await?;
            let endless =
                deliveries.filter(|item| std::future::ready(item.is_ok())).chain(futures_util::stream::pending());
            Ok(Subscription { deliveries: endless.boxed(), channel: Arc::new(ForgetfulChannel(channel)) })
        }
        .boxed()
    }

    fn publish(&self, message: Outgoing, lane: Lane) -> BoxFuture<'static, Result<Routing, PublishError>> {
        self.0.publish(message, lane)
    }

    fn state(&self) -> watch::Receiver<ConnectionState> {
        self.0.state()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.close()
    }
}

#[derive(Debug)]
struct ForgetfulChannel(Arc<dyn Channel>);

impl Channel for ForgetfulChannel {
    fn settle(&self, tag: u64, verdict: Verdict) -> Settled {
        self.0.settle(tag, verdict)
    }

    fn cancel(&self) -> BoxFuture<'_, ()> {
        self.0.cancel()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_its_client_forgot_leaves_no_dead_consumer() {
    let script = Script::accepts();
    let broker = Memory::private();
    let transport = Forgetful { broker: broker.clone(), connected: Arc::default() };
    let scene = Scene::over(&broker, transport, app(&script).consumer::<consumers::short>()).await;
    broker.cut();
    scene.put("short", "a");
    script.called(1, Duration::from_secs(10)).await;
    assert_eq!(scene.running.health().await.status, Status::Up);
}

#[tokio::test(start_paused = true)]
async fn after_a_loss_the_first_try_to_connect_comes_at_once() {
    let script = Script::accepts();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    let cut = Instant::now();
    scene.broker.cut();
    scene.put("short", "a");
    script.called(1, LATEST).await;
    assert!(cut.elapsed() < Duration::from_millis(100), "{:?}", cut.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_away_for_a_day_is_tried_on_and_on_and_not_too_often() {
    let script = Script::accepts();
    let broker = Memory::private();
    let connected = Arc::new(AtomicUsize::new(0));
    let transport = Forgetful { broker: broker.clone(), connected: Arc::clone(&connected) };
    let scene = Scene::over(&broker, transport, app(&script).consumer::<consumers::short>()).await;
    broker.refuse_connections(true);
    broker.cut();
    tokio::time::sleep(Duration::from_hours(24)).await;
    let tries = connected.load(Ordering::SeqCst);
    // Two connections, each at least every half a minute and never twice in ten seconds.
    assert!(tries > 2 * 24 * 60 * 2 - 10 && tries < 2 * 24 * 60 * 6, "{tries} tries in a day");
    assert_eq!(scene.running.health().await.status, Status::Down);
    broker.refuse_connections(false);
    scene.put("short", "a");
    script.called(1, Duration::from_secs(40)).await;
    // Each of the two connections waits for its own next try.
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(scene.running.health().await.status, Status::Up);
}

#[tokio::test(start_paused = true)]
async fn after_a_hundred_flaps_the_broker_sees_exactly_the_consumers_and_connections_that_are_configured() {
    let script = Script::accepts();
    let scene = Scene::start(app(&script).consumer::<consumers::short>().consumer::<consumers::long>()).await;
    for flap in 0_u64..100 {
        match flap % 4 {
            0 | 1 => scene.broker.cut(),
            2 => scene.broker.close_channels("short"),
            _ => scene.broker.cancel_consumers("long"),
        }
        tokio::time::sleep(Duration::from_millis(flap * 37 % 900)).await;
    }
    tokio::time::sleep(Duration::from_mins(2)).await;
    scene.broker.view(|view| {
        assert_eq!((view.consumers("short"), view.consumers("long"), view.connections()), (1, 1, 2));
        assert_eq!(view.tags("short"), ["faults::consumers::short@short"]);
    });
    // After a life of two minutes a loss is met with a try at once again.
    let cut = Instant::now();
    scene.broker.cut();
    scene.broker.wait_until(|view| view.connections() == 2 && view.consumers("short") == 1).await;
    assert!(cut.elapsed() < Duration::from_millis(100), "{:?}", cut.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ends_after_its_channel_was_lost_settles_nothing_and_the_message_comes_again() {
    let script = Script::new(async |_, context| {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let _ = context;
        Ok(Ack::accept())
    });
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    scene.put("short", "a");
    script.called(1, LATEST).await;
    scene.broker.cut();
    script.called(2, LATEST).await;
    scene.empty("short").await;
    scene.running.settled().await;
    let totals = scene.running.totals();
    assert_eq!((totals.delivered, totals.acked, totals.lost), (2, 1, 1));
    assert_eq!(script.attempts(), [1, 1], "a redelivery is no attempt");
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_retry_ends_with_its_channel_and_spends_no_attempt() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    scene.put("short", "a");
    script.called(1, LATEST).await;
    tokio::task::yield_now().await;
    scene.broker.cut();
    script.called(2, Duration::from_millis(900)).await;
    assert_eq!(script.attempts(), [1, 1]);
    scene.lying("short.dlq", 1).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_connection_a_publish_is_refused_and_nothing_was_sent() {
    let script = Script::accepts();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    scene.broker.refuse_connections(true);
    scene.broker.cut();
    let health = scene.running.health().await;
    assert_eq!((health.publishing.open, health.publishing.status), (false, Status::Degraded), "seen at once");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let refused = scene.running.publisher().to_queue("short").send("a").await;
    assert!(matches!(refused, Err(SendError::Refused { .. })), "{refused:?}");
    assert_eq!(scene.broker.depth("short"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_blocked_publish_is_refused_before_anything_is_written_and_a_new_connection_is_not_blocked() {
    let script = Script::accepts();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    scene.broker.block("low on disk");
    let refused = scene.running.publisher().to_queue("short").send("a").await;
    let Err(SendError::Refused { why }) = refused else { panic!("{refused:?}") };
    assert!(why.contains("low on disk"), "{why}");
    scene.broker.unblock();
    scene.broker.cut();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(scene.running.health().await.publishing.blocked, None);
    scene.running.publisher().to_queue("short").send("a").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_ends_every_publish_that_waits_as_unknown_and_none_as_refused() {
    let script = Script::accepts();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    scene.broker.lose_confirms(20);
    let publisher = scene.running.publisher();
    let waiting: Vec<_> = (0..20)
        .map(|number| {
            let publication = publisher.to_queue("short");
            tokio::spawn(async move { publication.send(&number).await })
        })
        .collect();
    script.called(20, LATEST).await;
    let cut = Instant::now();
    scene.broker.cut();
    for publish in waiting {
        let unknown = publish.await.unwrap();
        assert!(matches!(unknown, Err(SendError::Unknown { .. })), "{unknown:?}");
    }
    assert!(cut.elapsed() < Duration::from_secs(1), "{:?}", cut.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_publish_that_the_broker_does_not_take_is_an_error_and_no_receipt() {
    let script = Script::accepts();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    scene.broker.nack_next(1);
    let nacked = scene.running.publisher().to_queue("short").send("a").await;
    assert_eq!(nacked, Err(SendError::Failed(PublishError::Nacked)));
    scene.running.publisher().to_queue("short").send("b").await.unwrap();
    script.called(1, LATEST).await;
    assert_eq!(script.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn permits_come_back_from_publishes_that_were_abandoned_or_never_answered() {
    let script = Script::accepts();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    let publisher = scene.running.publisher();
    scene.broker.lose_confirms(3_000);
    let waiting: Vec<_> = (0..3_000)
        .map(|number| {
            let publication = publisher.to_queue("short");
            tokio::spawn(async move { publication.send(&number).await })
        })
        .collect();
    script.called(1_000, LATEST).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(script.calls().len(), 1_000, "more are outstanding than there are permits");
    // A third is not awaited any more, the rest ends with the time for a confirm.
    waiting.iter().take(1_000).for_each(tokio::task::JoinHandle::abort);
    for publish in waiting.into_iter().skip(1_000) {
        assert!(publish.await.unwrap().is_err());
    }
    scene.broker.lose_confirms(0);
    let began = Instant::now();
    publisher.to_queue("short").send("the last").await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
}
