//! The end of one consumer while others go on.

use std::time::Duration;

use acemq::{health::Status, transport::memory::Memory};
use tokio::time::Instant;

use super::bench::{Bench, adds_up, app, deaf, put, queues, until, works};

#[tokio::test(start_paused = true)]
async fn a_stopped_consumer_finishes_its_handlers_gives_the_rest_back_and_leaves_the_others_alone() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<queues>().consumer::<works>().start().await.unwrap();
    for _ in 0..3 {
        put(&broker, "queues", "a");
    }
    bench.begun(1).await;
    until(&running, |now| now.left.held == 2).await;
    let handle = running.handle();
    let stop = tokio::spawn(async move { handle.stop("queues").await });
    broker.wait_until(|view| view.consumers("queues") == 0 && view.ready("queues") == 2).await;
    assert_eq!(broker.unacked("queues"), 1, "the channel stays open for the handler that runs");
    bench.go(1);
    let stopped = stop.await.unwrap().unwrap();
    assert_eq!((stopped.finished, stopped.totals.acked, stopped.totals.returned.unstarted), (true, 1, 2));
    put(&broker, "works", "b");
    bench.begun(2).await;
    bench.go(1);
    running.settled().await;
    assert_eq!(running.health().await.status, Status::Degraded);
    let drained = running.close().await;
    adds_up(&drained, &broker, 4);
}

#[tokio::test(start_paused = true)]
async fn a_stop_has_the_same_deadline_and_grace_as_a_close() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<deaf>().consumer::<works>().start().await.unwrap();
    put(&broker, "deaf", "a");
    bench.begun(1).await;
    let started = Instant::now();
    let stopped = running.stop("deaf").await.unwrap();
    assert!(started.elapsed() < Duration::from_millis(25_200), "{:?}", started.elapsed());
    assert_eq!((stopped.finished, stopped.abandoned, broker.ready("deaf")), (false, 1, 1));
    // Once more is no more than once.
    assert_eq!(running.stop("deaf").await.unwrap().abandoned, 1);
    assert!(running.stop("dea").await.is_err());
    let _ = running.close().await;
}
