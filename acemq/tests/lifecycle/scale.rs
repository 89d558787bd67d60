//! Many consumers and many handlers; times by the clock on the wall.

use std::{
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use acemq::{
    App, RetryPolicy, State, Text, consumer,
    handler::Ack,
    registry::{Consumer, ConsumerSpec, Location, QueueKind, Registration},
    transport::memory::Memory,
};

use super::bench::{Bench, app, put, until, works};

const FIFTY: [&str; 50] = [
    "q00", "q01", "q02", "q03", "q04", "q05", "q06", "q07", "q08", "q09", "q10", "q11", "q12", "q13", "q14", "q15",
    "q16", "q17", "q18", "q19", "q20", "q21", "q22", "q23", "q24", "q25", "q26", "q27", "q28", "q29", "q30", "q31",
    "q32", "q33", "q34", "q35", "q36", "q37", "q38", "q39", "q40", "q41", "q42", "q43", "q44", "q45", "q46", "q47",
    "q48", "q49",
];

/// Fails, and waits five minutes for its next try.
struct Fails<const N: usize>;

impl<const N: usize> Consumer for Fails<N> {
    const REGISTRATION: Registration = Registration {
        name: FIFTY[N],
        location: Location { file: file!(), line: line!() },
        spec: ConsumerSpec {
            declare: Some(QueueKind::Quorum),
            retry: RetryPolicy::fixed(5, Duration::from_mins(5)).wait_in_broker_from(Duration::from_hours(1)),
            ..ConsumerSpec::new(FIFTY[N])
        },
        requires: |_| {},
        invoke: |_| Box::pin(async { Ack::retry("no") }),
    };
}

macro_rules! with_all {
    ($app:expr; $($n:literal)*) => { $app$(.consumer::<Fails<$n>>())* };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_consumers_in_waits_of_minutes_close_within_a_second() {
    let broker = Memory::private();
    let app = App::new().transport(broker.clone());
    let app = with_all!(app; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34
        35 36 37 38 39 40 41 42 43 44 45 46 47 48 49);
    let running = app.start().await.unwrap();
    for queue in FIFTY {
        for _ in 0..20 {
            put(&broker, queue, "a");
        }
    }
    until(&running, |now| now.left.waiting == 1_000).await;
    let started = Instant::now();
    let drained = running.close().await;
    let took = started.elapsed();
    println!("50 consumers with 1,000 waits closed after {took:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!((drained.finished, drained.totals.returned.waiting), (true, 1_000));
    assert!(FIFTY.iter().all(|queue| broker.ready(queue) == 20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_handlers_that_end_at_once_drain_within_fifty_milliseconds() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<works>().start().await.unwrap();
    for _ in 0..1_000 {
        put(&broker, "works", "a");
    }
    bench.begun(1_000).await;
    let handle = running.handle();
    let drain = tokio::spawn(async move {
        let drained = handle.drain(Duration::from_secs(10)).await;
        (drained, Instant::now())
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    bench.go(1_000);
    while bench.ended().len() < 1_000 {
        tokio::task::yield_now().await;
    }
    let last = Instant::now();
    let (drained, at) = drain.await.unwrap();
    let took = at.saturating_duration_since(last);
    println!("1,000 handlers drained {took:?} after the last one ended");
    assert!(took < Duration::from_millis(50), "{took:?}");
    assert_eq!((drained.finished, drained.totals.acked), (true, 1_000));
    let _ = running.close().await;
}

/// Holds its thread until as many run at once as the consumer allows.
#[consumer(queue = "blocks", declare = quorum, prefetch = 64, blocking)]
fn blocks(_: Text, State(crowd): State<Arc<Crowd>>) -> Result<(), String> {
    let mut count = crowd.count.lock().unwrap();
    *count += 1;
    crowd.changed.notify_all();
    let all = |count: &mut usize| *count < 64;
    let (_count, waited) = crowd.changed.wait_timeout_while(count, Duration::from_secs(60), all).unwrap();
    if waited.timed_out() { Err("the others did not come".to_owned()) } else { Ok(()) }
}

#[derive(Default)]
struct Crowd {
    count: Mutex<usize>,
    changed: Condvar,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_blocking_handlers_run_at_once_as_the_consumer_allows_whatever_the_number_of_processors() {
    let broker = Memory::private();
    let app = App::new().transport(broker.clone()).state(Arc::new(Crowd::default()));
    let running = app.consumer::<blocks>().start().await.unwrap();
    for _ in 0..64 {
        put(&broker, "blocks", "a");
    }
    broker.wait_until(|view| view.depth("blocks") == 0).await;
    running.settled().await;
    assert_eq!(running.close().await.totals.acked, 64);
}
