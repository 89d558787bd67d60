//! What a close waits for, what it gives back, and when it ends.

use std::time::Duration;

use acemq::transport::{Incoming, memory::Memory};
use tokio::time::Instant;

use super::bench::{Bench, adds_up, app, deaf, everyone, fails, obeys, put, queues, sleeps, until};

#[tokio::test(start_paused = true)]
async fn a_close_waits_for_a_handler_that_ends_in_time_and_no_longer() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<sleeps>().start().await.unwrap();
    put(&broker, "sleeps", "100");
    put(&broker, "sleeps", "5000");
    bench.begun(2).await;
    let started = Instant::now();
    let drained = running.close().await;
    assert!(started.elapsed() < Duration::from_millis(5_050), "{:?}", started.elapsed());
    assert_eq!(bench.ended(), ["100", "5000"]);
    assert!(drained.finished);
    assert_eq!((drained.totals.acked, broker.depth("sleeps")), (2, 0));
    adds_up(&drained, &broker, 2);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_obeys_is_told_at_the_deadline_and_its_message_goes_back_with_its_attempt() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<obeys>().start().await.unwrap();
    for body in ["a", "b", "c"] {
        put(&broker, "obeys", body);
    }
    bench.begun(3).await;
    let started = Instant::now();
    let drained = running.close().await;
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(20) && took < Duration::from_millis(20_100), "{took:?}");
    assert_eq!((drained.finished, drained.abandoned, drained.totals.returned.stopped), (true, 0, 3));
    let back = broker.messages("obeys");
    let as_it_was =
        |message: &Incoming| message.redelivered && !message.properties.headers.contains_key("x-acemq-attempt");
    assert!(back.len() == 3 && back.iter().all(as_it_was), "{back:?}");
    adds_up(&drained, &broker, 3);
}

#[tokio::test(start_paused = true)]
async fn a_deaf_handler_is_abandoned_after_the_grace_and_its_message_delivered_again() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<deaf>().start().await.unwrap();
    put(&broker, "deaf", "a");
    bench.begun(1).await;
    let started = Instant::now();
    let drained = running.close().await;
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(25) && took < Duration::from_millis(25_100), "{took:?}");
    assert_eq!((drained.finished, drained.abandoned, drained.totals.returned.abandoned), (false, 1, 1));
    assert_eq!(broker.ready("deaf"), 1);
    adds_up(&drained, &broker, 1);
}

#[tokio::test(start_paused = true)]
async fn one_deadline_holds_for_everything_and_the_account_says_what_became_of_each() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = everyone(app(&bench, &broker)).start().await.unwrap();
    for (queue, body) in [
        ("works", "accepted"),
        ("works", "stuck"),
        ("sleeps", "5000"),
        ("obeys", "a"),
        ("deaf", "a"),
        ("fails", "a"),
        ("fails", "b"),
        ("queues", "first"),
        ("queues", "second"),
        ("queues", "third"),
    ] {
        put(&broker, queue, body);
    }
    bench.begun(8).await;
    bench.go(1);
    until(&running, |now| now.left.waiting == 2 && now.left.held == 2 && now.totals.acked == 1).await;
    let started = Instant::now();
    let drained = running.close().await;
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(25) && took < Duration::from_millis(25_200), "{took:?}");
    let (totals, returned) = (drained.totals, drained.totals.returned);
    assert_eq!((totals.delivered, totals.acked), (10, 2));
    assert_eq!((returned.unstarted, returned.waiting, returned.stopped), (2, 2, 1));
    // The deaf one, and two more that never listen.
    assert_eq!((returned.abandoned, drained.abandoned, drained.finished), (3, 3, false));
    adds_up(&drained, &broker, 10);
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_minutes_ends_at_once_with_its_attempt_unchanged_however_often_the_process_restarts() {
    let (bench, broker) = (Bench::new(), Memory::private());
    for round in 0..5_usize {
        let running = app(&bench, &broker).consumer::<fails>().start().await.unwrap();
        if round == 0 {
            put(&broker, "fails", "a");
        }
        bench.begun(round + 1).await;
        until(&running, |now| now.left.waiting == 1).await;
        let started = Instant::now();
        let drained = running.close().await;
        assert!(started.elapsed() < Duration::from_millis(10), "{:?}", started.elapsed());
        assert_eq!((drained.finished, drained.totals.returned.waiting), (true, 1));
    }
    assert!(bench.seen().iter().all(|(_, attempt)| *attempt == 1), "{:?}", bench.seen());
    assert_eq!((bench.seen().len(), broker.depth("fails"), broker.depth("fails.dlq")), (5, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_held_goes_back_at_once_and_no_handler_sees_it() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<queues>().start().await.unwrap();
    running.pause_consuming();
    for _ in 0..20 {
        put(&broker, "queues", "a");
    }
    until(&running, |now| now.left.held == 20).await;
    let started = Instant::now();
    let drained = running.close().await;
    assert!(started.elapsed() < Duration::from_millis(10), "{:?}", started.elapsed());
    assert_eq!((drained.totals.returned.unstarted, bench.seen().len(), broker.ready("queues")), (20, 0, 20));
}

#[tokio::test(start_paused = true)]
async fn a_hurry_tells_handlers_to_stop_and_a_second_one_ends_the_grace() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<obeys>().consumer::<deaf>().start().await.unwrap();
    put(&broker, "obeys", "a");
    put(&broker, "deaf", "a");
    bench.begun(2).await;
    let handle = running.handle();
    let started = Instant::now();
    let close = tokio::spawn(running.close());
    tokio::time::sleep(Duration::from_secs(1)).await;
    handle.hurry();
    until_ended(&bench, 1).await;
    assert_eq!(started.elapsed().as_secs(), 1);
    handle.hurry();
    let drained = close.await.unwrap();
    assert!(started.elapsed() < Duration::from_millis(1_100), "{:?}", started.elapsed());
    assert_eq!((drained.totals.returned.stopped, drained.totals.returned.abandoned), (1, 1));
    adds_up(&drained, &broker, 2);
}

async fn until_ended(bench: &Bench, count: usize) {
    while bench.ended().len() < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_in_time_when_a_confirm_never_comes() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<rejects::rejects>().start().await.unwrap();
    broker.stall_confirms(true);
    put(&broker, "rejects", "a");
    bench.begun(1).await;
    until(&running, |now| now.left.settling == 1).await;
    let started = Instant::now();
    let drained = running.close().await;
    assert!(started.elapsed() < Duration::from_secs(31), "{:?}", started.elapsed());
    let totals = &drained.totals;
    assert_eq!(totals.delivered, totals.settled());
    assert_eq!((totals.acked, totals.rejected, broker.depth("rejects")), (0, 0, 1), "an unconfirmed copy counted");
}

mod rejects {
    use acemq::{Ack, Context, State, Text, consumer};

    use super::Bench;

    #[consumer(queue = "rejects", declare = quorum)]
    pub async fn rejects(Text(what): Text, State(bench): State<Bench>, context: Context) -> Ack {
        bench.begin(&what, &context);
        Ack::dead_letter("never")
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_in_time_while_the_broker_blocks_publishers() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<rejects::rejects>().start().await.unwrap();
    broker.block("low on memory");
    put_anyway(&broker, "rejects");
    bench.begun(1).await;
    let started = Instant::now();
    let drained = running.close().await;
    assert!(started.elapsed() < Duration::from_secs(26), "{:?}", started.elapsed());
    assert_eq!((drained.totals.delivered, drained.totals.settled(), broker.depth("rejects")), (1, 1, 1));
}

/// A blocked broker takes nothing from a client either.
fn put_anyway(broker: &Memory, queue: &str) {
    broker.unblock();
    put(broker, queue, "a");
    broker.block("low on memory");
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_in_time_when_the_broker_is_gone() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<sleeps>().consumer::<deaf>().start().await.unwrap();
    put(&broker, "sleeps", "5000");
    put(&broker, "deaf", "a");
    bench.begun(2).await;
    broker.refuse_connections(true);
    broker.cut();
    let started = Instant::now();
    let drained = running.close().await;
    assert!(started.elapsed() < Duration::from_millis(25_200), "{:?}", started.elapsed());
    assert_eq!((drained.totals.delivered, drained.totals.lost, drained.finished), (2, 2, false));
    assert_eq!((broker.ready("sleeps"), broker.ready("deaf")), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_handler_that_blocks_its_thread_is_left_behind_and_counted() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let (release, released) = std::sync::mpsc::channel::<()>();
    let holds = holds::Holds(std::sync::Arc::new(std::sync::Mutex::new(released)));
    let running = app(&bench, &broker)
        .state(holds)
        .drain_timeout(Duration::from_millis(100))
        .grace(Duration::from_millis(100))
        .consumer::<holds::holds>()
        .start()
        .await
        .unwrap();
    put(&broker, "holds", "a");
    bench.begun(1).await;
    let started = Instant::now();
    let drained = running.close().await;
    assert!(started.elapsed() < Duration::from_secs(7), "{:?}", started.elapsed());
    assert_eq!((drained.finished, drained.abandoned, drained.left.running), (false, 1, 1));
    assert_eq!(drained.totals.delivered, drained.totals.settled() + 1);
    assert_eq!(broker.ready("holds"), 1, "the message of a handler that blocks goes back with its channel");
    drop(release);
}

mod holds {
    use std::sync::{Arc, Mutex, mpsc};

    use acemq::{Ack, Context, State, Text, consumer};

    use super::Bench;

    #[derive(Clone)]
    pub struct Holds(pub Arc<Mutex<mpsc::Receiver<()>>>);

    #[consumer(queue = "holds", declare = quorum)]
    pub async fn holds(Text(what): Text, State(bench): State<Bench>, State(hold): State<Holds>, context: Context) {
        bench.begin(&what, &context);
        // Ends when the test does.
        let _ = hold.0.lock().unwrap().recv();
    }

    #[consumer(queue = "refuses", declare = quorum, blocking)]
    pub fn refuses(Text(what): Text, State(bench): State<Bench>, State(hold): State<Holds>, context: Context) -> Ack {
        bench.begin(&what, &context);
        let _ = hold.0.lock().unwrap().recv();
        bench.end(&what);
        Ack::dead_letter("too late")
    }
}

/// The outcome of a handler that was abandoned says nothing any more, whenever it comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn what_an_abandoned_handler_returns_later_moves_and_settles_nothing() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let (release, released) = std::sync::mpsc::channel::<()>();
    let holds = holds::Holds(std::sync::Arc::new(std::sync::Mutex::new(released)));
    let short = Duration::from_millis(100);
    let app = app(&bench, &broker).state(holds).drain_timeout(short).grace(short);
    let running = app.consumer::<holds::refuses>().start().await.unwrap();
    put(&broker, "refuses", "a");
    bench.begun(1).await;
    let drained = running.close().await;
    assert_eq!((drained.finished, drained.totals.returned.abandoned), (false, 1));
    release.send(()).unwrap();
    while bench.ended().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!((broker.ready("refuses"), broker.depth("refuses.dlq")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_claimed_while_the_close_begins_is_not_handled_and_its_claim_is_free() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let store = slow::Slow::default();
    let running = app(&bench, &broker).idempotency(store.clone()).consumer::<slow::claims>().start().await.unwrap();
    put_with_id(&broker, "claims");
    until(&running, |now| now.left.starting == 1).await;
    let drained = running.close().await;
    assert_eq!((bench.seen().len(), drained.totals.returned.unstarted, drained.totals.delivered), (0, 1, 1));
    assert_eq!(store.released(), 1);
}

fn put_with_id(broker: &Memory, queue: &str) {
    let properties = acemq::envelope::Properties {
        content_type: Some("text/plain".to_owned()),
        message_id: Some("the-id".to_owned()),
        ..Default::default()
    };
    let message = acemq::transport::Outgoing {
        exchange: String::new(),
        routing_key: queue.to_owned(),
        mandatory: true,
        properties,
        body: "a".into(),
    };
    let _ = broker.publish(message).unwrap();
}

mod slow {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use acemq::{
        Context, State, Text, consumer,
        idempotency::{Claim, ClaimStore, Fenced, MemoryStore, StoreError, Token},
    };
    use futures_util::future::BoxFuture;

    use super::Bench;

    #[consumer(queue = "claims", declare = quorum, idempotent)]
    pub async fn claims(Text(what): Text, State(bench): State<Bench>, context: Context) {
        bench.begin(&what, &context);
    }

    /// A store that takes a second for a claim.
    #[derive(Debug, Clone, Default)]
    pub struct Slow {
        store: Arc<MemoryStore>,
        released: Arc<AtomicUsize>,
    }

    impl Slow {
        pub fn released(&self) -> usize {
            self.released.load(Ordering::SeqCst)
        }
    }

    type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

    impl ClaimStore for Slow {
        fn claim<'a>(&'a self, key: &'a str, token: &'a Token, lease: Duration) -> Answer<'a, Claim> {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                self.store.claim(key, token, lease).await
            })
        }

        fn confirm<'a>(&'a self, key: &'a str, token: &'a Token, retention: Duration) -> Answer<'a, Fenced> {
            self.store.confirm(key, token, retention)
        }

        fn renew<'a>(&'a self, key: &'a str, token: &'a Token, lease: Duration) -> Answer<'a, Fenced> {
            self.store.renew(key, token, lease)
        }

        fn release<'a>(&'a self, key: &'a str, token: &'a Token) -> Answer<'a, Fenced> {
            self.released.fetch_add(1, Ordering::SeqCst);
            self.store.release(key, token)
        }

        fn check(&self) -> Answer<'_, ()> {
            self.store.check()
        }

        fn purge(&self, most: usize) -> Answer<'_, usize> {
            self.store.purge(most)
        }
    }
}
