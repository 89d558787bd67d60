//! Many messages at once, on the embedded broker.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs, reason = "a test fails by a panic")]

use acemq::{App, SendError, Text, consumer, transport::memory::Memory};

#[consumer(queue = "batch", declare = quorum)]
async fn batch(_: Text) {}

#[tokio::test(start_paused = true)]
async fn a_batch_larger_than_what_may_be_outstanding_gives_its_receipts_in_order() {
    let broker = Memory::private();
    let running = App::new().transport(broker.clone()).consumer::<batch>().start().await.unwrap();
    running.pause_consuming();
    let numbers: Vec<u32> = (0..2_500).collect();
    let receipts = running.publisher().to_queue("batch.dlq").send_all(&numbers).await.unwrap();
    let ids: Vec<Option<String>> = receipts.into_iter().map(|receipt| Some(receipt.id)).collect();
    let queued: Vec<_> =
        broker.messages("batch.dlq").into_iter().map(|message| message.properties.message_id).collect();
    assert_eq!((queued.len(), queued), (2_500, ids));
    let _ = running.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_fails_in_part_says_what_became_of_each() {
    let broker = Memory::private();
    let running = App::new().transport(broker.clone()).consumer::<batch>().start().await.unwrap();
    broker.nack_next(1);
    let error = running.publisher().to_queue("batch.dlq").send_all(["a", "b", "c"]).await.unwrap_err();
    let (failed, _) = error.failures().next().unwrap();
    assert_eq!((failed, error.failures().count(), error.results.len()), (0, 1, 3));
    assert_eq!(broker.depth("batch.dlq"), 2);
    let said = error.to_string();
    assert!(
        said.starts_with("1 of 3 messages were not confirmed: 0 found no queue, 0 have an unknown outcome, 1"),
        "{said}"
    );
    let _ = running.close().await;
}

#[tokio::test(start_paused = true)]
async fn one_id_for_a_batch_is_an_error_before_anything_is_sent() {
    let broker = Memory::private();
    let running = App::new().transport(broker.clone()).consumer::<batch>().start().await.unwrap();
    let error = running.publisher().to_queue("batch.dlq").id("one").send_all(["a", "b"]).await.unwrap_err();
    assert_eq!(error.results, [Err(SendError::SharedId), Err(SendError::SharedId)]);
    assert_eq!(broker.depth("batch.dlq"), 0);
    let _ = running.close().await;
}
