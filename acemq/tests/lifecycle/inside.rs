//! An application that is steered from inside its own handlers.

use std::time::Duration;

use acemq::{Context, Handle, State, Text, consumer, transport::memory::Memory};
use tokio::time::Instant;

use super::bench::{Bench, adds_up, app, put, works};

/// Does to its application what the message says.
#[consumer(queue = "sleeps", declare = quorum, name = "steers")]
async fn steers(Text(what): Text, State(bench): State<Bench>, handle: Handle, context: Context) {
    bench.begin(&what, &context);
    match &*what {
        "pause" => handle.pause_consuming(),
        "resume" => handle.resume_consuming(),
        "close" => handle.begin_close(),
        "drain" => {
            let drained = handle.drain(Duration::from_mins(1)).await;
            assert!(drained.finished, "{drained:?}");
        }
        "stop" => {
            let stopped = handle.stop("steers").await.unwrap();
            assert!(!stopped.finished, "a stop from inside cannot have waited for its own handler");
        }
        "everything" => {
            handle.pause_consuming();
            let _ = handle.drain(Duration::from_mins(1)).await;
            handle.resume_consuming();
            let _ = handle.stop("steers").await.unwrap();
            let _ = handle.drain(Duration::from_mins(1)).await;
            handle.begin_close();
            handle.hurry();
        }
        "wait for the close" => {
            handle.begin_close();
            let _ = handle.closed().await;
        }
        other => panic!("{other}"),
    }
    bench.end(&what);
}

#[tokio::test(start_paused = true)]
async fn whatever_a_handler_does_to_its_application_nothing_waits_for_that_handler() {
    for what in ["pause", "resume", "close", "drain", "stop", "everything"] {
        let (bench, broker) = (Bench::new(), Memory::private());
        let running = app(&bench, &broker).consumer::<steers>().consumer::<works>().start().await.unwrap();
        let started = Instant::now();
        put(&broker, "sleeps", what);
        while bench.ended().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let drained = running.close().await;
        assert!(started.elapsed() < Duration::from_millis(200), "{what}: {:?}", started.elapsed());
        assert!(drained.finished, "{what}: {drained:?}");
        adds_up(&drained, &broker, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_from_a_handler_waits_for_all_others() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<steers>().consumer::<works>().start().await.unwrap();
    put(&broker, "works", "a");
    bench.begun(1).await;
    put(&broker, "sleeps", "drain");
    bench.begun(2).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(bench.ended().is_empty(), "the drain did not wait");
    bench.go(1);
    running.settled().await;
    assert_eq!(bench.ended(), ["a", "drain"]);
    let _ = running.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_the_close_is_abandoned_and_blocks_it_no_longer_than_any_other() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<steers>().start().await.unwrap();
    put(&broker, "sleeps", "wait for the close");
    bench.begun(1).await;
    let started = Instant::now();
    let drained = running.closed().await;
    assert!(started.elapsed() < Duration::from_millis(25_200), "{:?}", started.elapsed());
    assert_eq!((drained.finished, drained.abandoned), (false, 1));
    let _ = running.close().await;
}
