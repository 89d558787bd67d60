//! What the broker refuses a consumer: declarations and subscriptions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use acemq::{
    Ack, OnRefusal,
    envelope::{Table, Value},
    health::Status,
    topology::{Declaration, DeclareError},
    transport::{
        ConnectError, Connection, ConnectionState, Lane, Outgoing, PublishError, Role, Routing, Subscribe,
        Subscription, Transport, memory::Memory,
    },
};
use futures_util::{FutureExt, future::BoxFuture};
use tokio::{sync::watch, time::Instant};

use super::{
    consumers,
    scene::{LATEST, Scene, Script, app},
};

/// The embedded broker, which refuses so many subscriptions, and takes a moment for each declaration.
#[derive(Debug, Clone)]
struct Reluctant {
    broker: Memory,
    refusals: Arc<AtomicUsize>,
    declared: Arc<AtomicUsize>,
}

impl Reluctant {
    fn new(refusals: usize) -> Self {
        let refusals = Arc::new(AtomicUsize::new(refusals));
        Self { broker: Memory::private(), refusals, declared: Arc::default() }
    }
}

#[derive(Debug)]
struct ReluctantConnection {
    inner: Arc<dyn Connection>,
    broker: Reluctant,
}

impl Transport for Reluctant {
    fn name(&self) -> &'static str {
        "reluctant"
    }

    fn address(&self) -> String {
        self.broker.address()
    }

    fn connect(&self, role: Role) -> BoxFuture<'_, Result<Arc<dyn Connection>, ConnectError>> {
        async move {
            let inner = self.broker.connect(role).await?;
            Ok(Arc::new(ReluctantConnection { inner, broker: self.clone() }) as Arc<dyn Connection>)
        }
        .boxed()
    }
}

impl Connection for ReluctantConnection {
    fn declare<'a>(&'a self, wanted: &'a Declaration) -> BoxFuture<'a, Result<(), DeclareError>> {
        self.broker.declared.fetch_add(1, Ordering::SeqCst);
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.inner.declare(wanted).await
        }
        .boxed()
    }

    fn subscribe<'a>(&'a self, wanted: &'a Subscribe) -> BoxFuture<'a, Result<Subscription, DeclareError>> {
        let left = self.broker.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_ok() {
            let object = format!("queue `{}`", wanted.queue);
            let refused = DeclareError::Denied { object, text: "read access refused".to_owned() };
            return async { Err(refused) }.boxed();
        }
        self.inner.subscribe(wanted)
    }

    fn publish(&self, message: Outgoing, lane: Lane) -> BoxFuture<'static, Result<Routing, PublishError>> {
        self.inner.publish(message, lane)
    }

    fn state(&self) -> watch::Receiver<ConnectionState> {
        self.inner.state()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_refused_is_degraded_with_the_reason_and_asked_for_again() {
    let script = Script::accepts();
    let transport = Reluctant::new(0);
    let scene = Scene::over(&transport.broker, transport.clone(), app(&script).consumer::<consumers::short>()).await;
    transport.refusals.store(8, Ordering::SeqCst);
    scene.broker.cancel_consumers("short");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let health = scene.running.health().await;
    assert_eq!(health.consumers[0].status, Status::Degraded);
    assert!(health.consumers[0].last_error.as_deref().unwrap().contains("read access refused"), "{health:?}");
    scene.put("short", "a");
    script.called(1, Duration::from_mins(1)).await;
    assert_eq!(transport.refusals.load(Ordering::SeqCst), 0);
    assert_eq!(scene.running.health().await.status, Status::Up);
}

#[tokio::test(start_paused = true)]
async fn a_start_whose_subscription_is_refused_is_an_error() {
    let script = Script::accepts();
    let transport = Reluctant::new(usize::MAX);
    let refused = app(&script).consumer::<consumers::short>().transport(transport).start().await.unwrap_err();
    let told = refused.to_string();
    assert!(told.contains("`short`: read access refused; give the user `configure`"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_close_does_not_wait_for_the_next_try_of_a_consumer_that_is_refused() {
    let script = Script::accepts();
    let transport = Reluctant::new(0);
    let scene = Scene::over(&transport.broker, transport.clone(), app(&script).consumer::<consumers::short>()).await;
    transport.refusals.store(usize::MAX, Ordering::SeqCst);
    scene.broker.cancel_consumers("short");
    tokio::time::sleep(Duration::from_mins(10)).await;
    let began = Instant::now();
    assert!(scene.running.close().await.finished);
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn many_messages_that_miss_one_queue_have_it_declared_once() {
    let script = Script::fails();
    let transport = Reluctant::new(0);
    let scene = Scene::over(&transport.broker, transport.clone(), app(&script).consumer::<consumers::once>()).await;
    let at_the_start = transport.declared.load(Ordering::SeqCst);
    scene.broker.delete_queue("once.dlq");
    for number in 0..20 {
        scene.put("once", &number.to_string());
    }
    assert_eq!(scene.lying("once.dlq", 20).await.len(), 20);
    assert_eq!(transport.declared.load(Ordering::SeqCst), 2 * at_the_start);
    assert_eq!(script.calls().len(), 20);
}

/// A dead-letter queue as no library of the family declares it.
fn declare_wrongly(broker: &Memory, queue: &str) {
    let arguments = Table::from([("x-max-length".to_owned(), Value::I32(5))]);
    broker.declare(&Declaration::Queue { name: queue.to_owned(), arguments }).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_consumer_whose_declaration_is_refused_waits_until_it_is_accepted_while_the_others_run() {
    let script = Script::accepts();
    let broker = Memory::private();
    declare_wrongly(&broker, "once.dlq");
    let both = app(&script).consumer::<consumers::once>().consumer::<consumers::short>();
    let scene = Scene::over(&broker, broker.clone(), both.on_refusal(OnRefusal::Degrade)).await;
    scene.put("once", "refused");
    scene.put("short", "accepted");
    script.called(1, LATEST).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let health = scene.running.health().await;
    let of = |at: usize| (health.consumers[at].status, health.consumers[at].subscribed);
    assert_eq!((of(0), of(1)), ((Status::Degraded, false), (Status::Up, true)), "{health:?}");
    assert!(health.consumers[0].last_error.as_deref().unwrap().contains("`once.dlq`"), "{health:?}");
    assert_eq!(script.calls().len(), 1, "a message was handled by a consumer that has no place for its failures");
    broker.delete_queue("once.dlq");
    script.called(2, Duration::from_secs(31)).await;
    assert_eq!(scene.running.health().await.status, Status::Up);
}

#[tokio::test(start_paused = true)]
async fn while_what_is_missing_cannot_be_declared_the_message_stays_and_nothing_goes_round_at_full_speed() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::once>()).await;
    scene.broker.delete_queue("once.dlq");
    scene.broker.delete_queue("once.parked");
    // Declared before the dead-letter queue, and now of another kind.
    scene.broker.delete_exchange("acemq.dlx");
    let kind = acemq::topology::ExchangeKind::Fanout;
    scene.broker.declare(&Declaration::Exchange { name: "acemq.dlx".to_owned(), kind }).unwrap();
    scene.put("once", "a");
    tokio::time::sleep(Duration::from_mins(10)).await;
    let deliveries = scene.running.totals().delivered;
    assert!((2..=130).contains(&deliveries), "{deliveries}");
    assert_eq!((scene.broker.depth("once"), script.attempts().iter().max()), (1, Some(&1)));
    scene.broker.delete_exchange("acemq.dlx");
    assert_eq!(scene.lying("once.dlq", 1).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_ends_again_and_again_is_not_renewed_at_full_speed() {
    let script = Script::new(async |_, _| Ok(Ack::accept()));
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    let broker = scene.broker.clone();
    let vandal = tokio::spawn(async move {
        loop {
            broker.wait_until(|view| view.consumers("short") == 1).await;
            broker.cancel_consumers("short");
        }
    });
    tokio::time::sleep(Duration::from_mins(10)).await;
    vandal.abort();
    let resubscribed = scene.running.health().await.consumers[0].resubscribed;
    // At most every half a minute, and several times before that.
    assert!((15..=60).contains(&resubscribed), "{resubscribed} times in ten minutes");
    scene.put("short", "a");
    script.called(1, Duration::from_secs(31)).await;
    // One that lasts is a success: its loss is met with a try at once.
    tokio::time::sleep(Duration::from_secs(11)).await;
    let lost = Instant::now();
    scene.broker.cancel_consumers("short");
    scene.put("short", "b");
    script.called(2, LATEST).await;
    assert!(lost.elapsed() < Duration::from_millis(100), "{:?}", lost.elapsed());
}
