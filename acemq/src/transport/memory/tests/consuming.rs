use super::*;
use crate::transport::{Settled, Verdict};

fn settle(subscription: &Subscription, delivery: &Incoming, verdict: Verdict) {
    let settled = subscription.channel.settle(delivery.tag, verdict);
    assert_eq!(settled, Settled::Done);
}

#[tokio::test]
async fn no_consumer_has_more_than_its_prefetch_and_every_settlement_makes_room_for_one() {
    let broker = broker(&[queue("q", [])]);
    fill(&broker, "q", &["1", "2", "3", "4"]);
    let (_connection, mut subscription) = consumer(&broker, "q", 2).await;
    let first = arrived(&mut subscription);
    assert_eq!(bodies(&first), ["1", "2"]);
    assert_eq!(redelivered(&first), [false, false]);
    assert_eq!((broker.ready("q"), broker.unacked("q")), (2, 2));
    settle(&subscription, &first[1], Verdict::Ack);
    assert_eq!(bodies(&arrived(&mut subscription)), ["3"]);
    settle(&subscription, &first[0], Verdict::Ack);
    assert_eq!(bodies(&arrived(&mut subscription)), ["4"]);
    assert_eq!((broker.ready("q"), broker.unacked("q")), (0, 2));
}

#[tokio::test]
async fn consumers_of_one_queue_take_turns() {
    let broker = broker(&[queue("q", [])]);
    let (connection, mut a) = consumer(&broker, "q", 2).await;
    let mut b = subscribe(&connection, "q", 10).await.unwrap();
    fill(&broker, "q", &["1", "2", "3", "4", "5", "6"]);
    assert_eq!(bodies(&arrived(&mut a)), ["1", "3"]);
    assert_eq!(bodies(&arrived(&mut b)), ["2", "4", "5", "6"]);
    assert_eq!(broker.consumers("q"), 2);
}

#[tokio::test]
async fn a_requeued_message_goes_back_in_front_and_says_so() {
    for (kind, order) in [("classic", ["1", "2", "3"]), ("quorum", ["2", "1", "3"])] {
        let broker = broker(&[queue("q", [("x-queue-type", kind.into())])]);
        fill(&broker, "q", &["1", "2", "3"]);
        let (_connection, mut subscription) = consumer(&broker, "q", 2).await;
        let held = arrived(&mut subscription);
        // Cancelled, so that nobody takes them again at once.
        subscription.channel.cancel().await;
        settle(&subscription, &held[1], Verdict::Requeue);
        settle(&subscription, &held[0], Verdict::Requeue);
        let back = broker.messages("q");
        assert_eq!(bodies(&back), order, "{kind}");
        assert_eq!(redelivered(&back), [true, true, false], "{kind}");
    }
}

#[tokio::test]
async fn unsettled_messages_come_back_in_order_when_their_channel_ends() {
    type End = fn(Arc<dyn Connection>, Subscription);
    let ends: [(&str, End); 3] = [
        ("closed", |_, subscription| {
            subscription.channel.close().now_or_never().unwrap();
        }),
        ("dropped", |_, subscription| drop(subscription)),
        ("connection closed", |connection, _| {
            connection.close().now_or_never().unwrap();
        }),
    ];
    for (name, finish) in ends {
        for kind in ["classic", "quorum"] {
            let broker = broker(&[queue("q", [("x-queue-type", kind.into())])]);
            fill(&broker, "q", &["1", "2", "3"]);
            let (connection, mut subscription) = consumer(&broker, "q", 2).await;
            let held = arrived(&mut subscription);
            assert_eq!(held.len(), 2);
            finish(connection, subscription);
            let back = broker.messages("q");
            assert_eq!(bodies(&back), ["1", "2", "3"], "{name}, {kind}");
            assert_eq!(redelivered(&back), [true, true, false], "{name}, {kind}");
            assert_eq!(broker.unacked("q"), 0, "{name}, {kind}");
        }
    }
}

#[tokio::test]
async fn after_a_cancel_the_buffered_deliveries_come_out_and_can_be_settled() {
    let broker = broker(&[queue("q", [])]);
    fill(&broker, "q", &["1", "2"]);
    let (_connection, mut subscription) = consumer(&broker, "q", 2).await;
    subscription.channel.cancel().await;
    fill(&broker, "q", &["3"]);
    let buffered = arrived(&mut subscription);
    assert_eq!(bodies(&buffered), ["1", "2"]);
    assert_eq!(end(&mut subscription), End::Clean);
    settle(&subscription, &buffered[0], Verdict::Ack);
    settle(&subscription, &buffered[1], Verdict::Requeue);
    assert_eq!(bodies(&broker.take("q")), ["2", "3"]);
    subscription.channel.close().await;
    let late = subscription.channel.settle(buffered[0].tag, Verdict::Ack);
    assert_eq!(late, Settled::Gone);
}

#[tokio::test]
async fn settling_twice_closes_the_channel_and_only_that() {
    let broker = broker(&[queue("q", []), queue("other", [])]);
    fill(&broker, "q", &["1", "2"]);
    let (connection, mut subscription) = consumer(&broker, "q", 2).await;
    let mut other = subscribe(&connection, "other", 1).await.unwrap();
    let held = arrived(&mut subscription);
    settle(&subscription, &held[0], Verdict::Ack);
    settle(&subscription, &held[0], Verdict::Ack);
    let ended = lost(&mut subscription);
    assert_eq!(ended.why, "PRECONDITION_FAILED - unknown delivery tag 1");
    assert!(!ended.connection);
    let late = subscription.channel.settle(held[1].tag, Verdict::Ack);
    assert_eq!(late, Settled::Gone);
    assert_eq!(redelivered(&broker.messages("q")), [true]);
    fill(&broker, "other", &["3"]);
    assert_eq!(bodies(&arrived(&mut other)), ["3"]);
}

#[tokio::test]
async fn deleting_a_queue_ends_its_deliveries_without_an_error() {
    let broker = broker(&[queue("q", [("x-message-ttl", Value::I32(1000))])]);
    fill(&broker, "q", &["1", "2", "3"]);
    let (_connection, mut subscription) = consumer(&broker, "q", 2).await;
    broker.delete_queue("q");
    let buffered = arrived(&mut subscription);
    assert_eq!(bodies(&buffered), ["1", "2"]);
    assert_eq!(end(&mut subscription), End::Clean);
    broker.declare(&queue("q", [])).unwrap();
    settle(&subscription, &buffered[0], Verdict::Requeue);
    subscription.channel.close().await;
    // They belonged to another queue of that name.
    assert_eq!(broker.depth("q"), 0);
}

#[tokio::test]
async fn a_missing_queue_and_a_prefetch_of_zero_are_refused() {
    let broker = broker(&[queue("q", [])]);
    let connection = connect(&broker, Role::Consume).await;
    let missing = subscribe(&connection, "nope", 1).await.unwrap_err();
    let object = "queue `nope`".to_owned();
    assert_eq!(missing, DeclareError::Missing { object });
    let zero = subscribe(&connection, "q", 0).await.unwrap_err();
    assert!(matches!(zero, DeclareError::Refused { .. }));
}

#[tokio::test]
async fn messages_outlive_the_connections_to_a_named_broker() {
    let first = Memory::named("messages outlive");
    first.declare(&queue("q", [])).unwrap();
    fill(&first, "q", &["1"]);
    drop(first);
    let second = Memory::named("messages outlive");
    assert_eq!(second.ready("q"), 1);
    assert_eq!(second.address(), "memory://messages outlive");
    Memory::forget("messages outlive");
    assert!(!Memory::named("messages outlive").view(|view| view.exists("q")));
}
