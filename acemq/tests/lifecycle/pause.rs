//! Pausing, in any order with everything else.

use std::time::Duration;

use acemq::{Handle, transport::memory::Memory};
use rand::{RngExt as _, SeedableRng};

use super::bench::{Bench, adds_up, app, put, queues, sleeps, until};

#[tokio::test(start_paused = true)]
async fn a_pause_holds_no_more_than_the_prefetch_and_loses_nothing() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<sleeps>().start().await.unwrap();
    running.pause_consuming();
    for _ in 0..1_000 {
        put(&broker, "sleeps", "1");
    }
    until(&running, |now| now.left.held == 20).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((running.held(), running.in_flight(), broker.ready("sleeps")), (20, 0, 980));
    running.resume_consuming();
    running.settled().await;
    broker.wait_until(|view| view.depth("sleeps") == 0).await;
    running.settled().await;
    let drained = running.close().await;
    assert_eq!((drained.totals.delivered, drained.totals.acked, bench.seen().len()), (1_000, 1_000, 1_000));
}

#[tokio::test(start_paused = true)]
async fn one_consumer_can_be_paused_alone_and_counted_alone() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<sleeps>().consumer::<queues>().start().await.unwrap();
    running.pause_consumer("queues").unwrap();
    put(&broker, "queues", "a");
    put(&broker, "sleeps", "1000000");
    bench.begun(1).await;
    until(&running, |now| now.left.held == 1).await;
    let (paused, other) = (running.account_of("queues").unwrap(), running.account_of("sleeps").unwrap());
    assert_eq!((paused.left.held, paused.left.running, other.left.held, other.left.running), (1, 0, 0, 1));
    running.resume_consumer("queues").unwrap();
    bench.begun(2).await;
    let unknown = running.pause_consumer("queue").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no consumer `queue` here; there are: sleeps, queues");
}

#[tokio::test(start_paused = true)]
async fn what_a_pause_held_when_its_channel_was_lost_comes_back_and_is_handled_once() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<sleeps>().start().await.unwrap();
    running.pause_consuming();
    for body in ["1", "2", "3"] {
        put(&broker, "sleeps", body);
    }
    until(&running, |now| now.left.held == 3).await;
    broker.cut();
    until(&running, |now| now.totals.lost == 3 && now.left.held == 3).await;
    running.resume_consuming();
    running.settled().await;
    let drained = running.close().await;
    assert_eq!((drained.totals.delivered, drained.totals.lost, drained.totals.acked), (6, 3, 3));
    assert_eq!(bench.seen().len(), 3);
}

/// Several tasks pause, resume, drain and stop while messages come; a fixed seed orders them.
#[test]
fn pauses_drains_stops_and_closes_in_any_order_from_any_task_never_deadlock_and_lose_nothing() {
    const ROUNDS: u64 = 40;
    const MESSAGES: usize = 200;
    for seed in 0..ROUNDS {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
        runtime.block_on(async {
            let (bench, broker) = (Bench::new(), Memory::private());
            let running = app(&bench, &broker).consumer::<sleeps>().consumer::<queues>().start().await.unwrap();
            bench.go(MESSAGES);
            let operators: Vec<_> = (0..3)
                .map(|operator| {
                    tokio::spawn(operate(running.handle(), rand::rngs::StdRng::seed_from_u64(seed * 3 + operator)))
                })
                .collect();
            for at in 0..MESSAGES {
                put(&broker, if at % 2 == 0 { "sleeps" } else { "queues" }, "1");
                if at % 16 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            if seed % 2 == 0 {
                for operator in operators {
                    operator.await.unwrap();
                }
            }
            let closed = tokio::time::timeout(Duration::from_secs(20), running.close()).await;
            let drained = closed.unwrap_or_else(|_| panic!("round {seed} does not close"));
            assert!(drained.finished, "round {seed}: {drained:?}");
            adds_up(&drained, &broker, MESSAGES);
        });
    }
}

async fn operate(handle: Handle, mut random: rand::rngs::StdRng) {
    for _ in 0..30 {
        match random.random_range(0..12) {
            0..4 => handle.pause_consuming(),
            4..8 => handle.resume_consuming(),
            8 | 9 => drop(handle.drain(Duration::from_millis(random.random_range(0..4))).await),
            10 => drop(handle.health().await),
            _ if random.random_range(0..10) == 0 => drop(handle.stop("sleeps").await),
            _ => tokio::task::yield_now().await,
        }
    }
}
