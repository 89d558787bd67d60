//! Publishes at a shutdown.

use std::time::Duration;

use acemq::{SendError, transport::memory::Memory};
use tokio::time::Instant;

use super::bench::{Bench, app, put, sleeps};

#[tokio::test(start_paused = true)]
async fn a_close_waits_for_the_answer_of_every_publish_that_was_taken() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<sleeps>().start().await.unwrap();
    running.pause_consuming();
    broker.stall_confirms(true);
    let publisher = running.publisher();
    let sends: Vec<_> = (0..50)
        .map(|_| {
            let publisher = publisher.clone();
            tokio::spawn(async move { publisher.to_queue("sleeps").send_raw("text/plain", "1").await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let started = Instant::now();
    let close = tokio::spawn(running.close());
    tokio::time::sleep(Duration::from_secs(3)).await;
    let late = publisher.to_queue("sleeps").send_raw("text/plain", "1").await.unwrap_err();
    assert!(matches!(&late, SendError::Refused { why } if why == "the application is closed"), "{late}");
    broker.stall_confirms(false);
    for send in sends {
        send.await.unwrap().unwrap();
    }
    assert!(close.await.unwrap().finished);
    assert_eq!(started.elapsed().as_secs(), 3);
    assert_eq!(broker.depth("sleeps"), 50);
}

#[tokio::test(start_paused = true)]
async fn handlers_publish_until_they_have_ended() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<late::late>().start().await.unwrap();
    put(&broker, "late", "a");
    bench.begun(1).await;
    let drained = running.close().await;
    assert_eq!((drained.totals.acked, broker.depth("late.parked")), (1, 1));
}

mod late {
    use std::time::Duration;

    use acemq::{Context, Publisher, SendError, State, Text, consumer};

    use super::Bench;

    #[consumer(queue = "late", declare = quorum)]
    pub async fn late(
        Text(what): Text,
        State(bench): State<Bench>,
        publisher: Publisher,
        context: Context,
    ) -> Result<(), SendError> {
        bench.begin(&what, &context);
        tokio::time::sleep(Duration::from_secs(5)).await;
        publisher.to_queue("late.parked").send_raw("text/plain", "done").await?;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_publish_is_refused_with_its_reason_and_acemqs_own_moves_go_on() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker).consumer::<super::bench::fails>().start().await.unwrap();
    running.pause_publishing();
    let refused = running.publisher().to_queue("fails").send_raw("text/plain", "a").await.unwrap_err();
    assert!(matches!(&refused, SendError::Refused { why } if why == "publishing is paused"), "{refused}");
    put(&broker, "fails", "a");
    bench.begun(5).await;
    running.settled().await;
    assert_eq!(broker.depth("fails.dlq"), 1);
    running.resume_publishing();
    running.publisher().to_queue("fails").send_raw("text/plain", "b").await.unwrap();
    let _ = running.close().await;
}
