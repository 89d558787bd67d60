//! Waiting for handlers without closing.

use std::time::Duration;

use acemq::transport::memory::Memory;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::bench::{Bench, adds_up, app, fails, put, queues, sleeps, until, works};

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_handlers_and_says_what_is_still_held_and_waiting() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running =
        app(&bench, &broker).consumer::<sleeps>().consumer::<queues>().consumer::<fails>().start().await.unwrap();
    put(&broker, "sleeps", "3000");
    put(&broker, "fails", "a");
    for body in ["first", "second", "third"] {
        put(&broker, "queues", body);
    }
    bench.begun(3).await;
    until(&running, |now| now.left.held == 2 && now.left.waiting == 1).await;
    let (drained, ()) = tokio::join!(running.drain(Duration::from_secs(10)), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bench.go(1);
    });
    assert!(drained.finished);
    assert_eq!((drained.left.held, drained.left.waiting, drained.left.running), (2, 1, 0));
    assert_eq!((drained.totals.acked, running.held(), running.in_flight()), (2, 2, 0));
    adds_up(&drained, &broker, 5);

    // The same messages, in their order, once consuming goes on.
    bench.go(2);
    running.resume_consuming();
    until(&running, |now| now.totals.acked == 4).await;
    assert_eq!(bench.ended(), ["first", "3000", "second", "third"]);
    let _ = running.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_runs_out_of_time_says_so_and_the_handlers_go_on() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<works>().start().await.unwrap();
    put(&broker, "works", "a");
    bench.begun(1).await;
    let started = Instant::now();
    let drained = running.drain(Duration::from_secs(3)).await;
    assert_eq!((started.elapsed().as_secs(), drained.finished, drained.left.running), (3, false, 1));
    put(&broker, "works", "b");
    until(&running, |now| now.left.held == 1).await;
    bench.go(2);
    until(&running, |now| now.totals.acked == 1).await;
    assert_eq!(running.held(), 1, "consuming is still paused");
    let drained = running.drain(Duration::from_secs(3)).await;
    assert!(drained.finished);
    running.resume_consuming();
    running.settled().await;
    adds_up(&running.close().await, &broker, 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_drain_is_an_error_that_abandons_the_wait_and_not_the_work() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<works>().start().await.unwrap();
    put(&broker, "works", "a");
    bench.begun(1).await;
    let token = CancellationToken::new();
    let handle = running.handle();
    let drain = tokio::spawn({
        let token = token.clone();
        async move { handle.drain_until(Duration::from_mins(1), &token).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    token.cancel();
    let abandoned = drain.await.unwrap().unwrap_err();
    assert_eq!((abandoned.0.finished, abandoned.0.left.running, running.in_flight()), (false, 1, 1));
    put(&broker, "works", "b");
    until(&running, |now| now.left.held == 1).await;
    bench.go(1);
    until(&running, |now| now.totals.acked == 1).await;
    let health = running.health().await;
    assert!(health.consuming.paused);
    let _ = running.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_during_a_drain_and_a_close_during_both_all_end() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<sleeps>().start().await.unwrap();
    put(&broker, "sleeps", "2000");
    bench.begun(1).await;
    let (one, two) = (running.handle(), running.handle());
    let one = tokio::spawn(async move { one.drain(Duration::from_mins(1)).await });
    let two = tokio::spawn(async move { two.drain(Duration::from_secs(1)).await });
    let closed = running.close().await;
    assert!(closed.finished && one.await.unwrap().finished && !two.await.unwrap().finished);
    adds_up(&closed, &broker, 1);
}
