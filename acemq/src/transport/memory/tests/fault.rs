use super::*;
use crate::transport::{ConnectError, ConnectionState, Settled, Verdict};

#[tokio::test(start_paused = true)]
async fn a_cut_ends_everything_that_came_from_the_connections() {
    let broker = broker(&[queue("q", [])]);
    fill(&broker, "q", &["1", "2"]);
    let (consuming, mut subscription) = consumer(&broker, "q", 1).await;
    let publishing = connect(&broker, Role::Publish).await;
    let held = arrived(&mut subscription);
    broker.lose_confirms(1);
    let lost = publishing.publish(message("", "q", "3"), Lane::Hop);
    broker.cut();
    assert!(super::lost(&mut subscription).connection);
    assert_eq!(end(&mut subscription), End::Clean);
    let late = subscription.channel.settle(held[0].tag, Verdict::Ack);
    assert_eq!(late, Settled::Gone);
    assert!(matches!(lost.await, Err(PublishError::Unknown { .. })));
    for connection in [&consuming, &publishing] {
        let state = connection.state().borrow().clone();
        assert!(matches!(state, ConnectionState::Closed { .. }));
        let declared = connection.declare(&queue("other", [])).await;
        assert!(matches!(declared, Err(DeclareError::Lost { .. })));
    }
    let refused = publishing.publish(message("", "q", "4"), Lane::Hop).await;
    assert!(matches!(refused, Err(PublishError::Refused { .. })));
    assert_eq!(bodies(&broker.messages("q")), ["1", "2", "3"]);
    assert_eq!(redelivered(&broker.messages("q")), [true, false, false]);
    assert_eq!(broker.view(|view| view.connections()), 0);
}

#[tokio::test]
async fn a_broker_that_refuses_connections_can_take_them_again() {
    let broker = broker(&[]);
    broker.refuse_connections(true);
    let refused = broker.connect(Role::Publish).await.unwrap_err();
    assert!(refused.is_transient());
    assert!(matches!(refused, ConnectError::Unreachable { .. }));
    broker.refuse_connections(false);
    assert!(broker.connect(Role::Publish).await.is_ok());
}

#[tokio::test]
async fn a_blocked_broker_refuses_publishes_and_goes_on_delivering() {
    let broker = broker(&[queue("q", [])]);
    fill(&broker, "q", &["1", "2"]);
    let (consuming, mut subscription) = consumer(&broker, "q", 1).await;
    let publishing = connect(&broker, Role::Publish).await;
    broker.block("low on memory");
    let late = connect(&broker, Role::Publish).await;
    let blocked = ConnectionState::Blocked { reason: "low on memory".to_owned() };
    for connection in [&publishing, &late] {
        assert_eq!(*connection.state().borrow(), blocked);
        let refused = connection.publish(message("", "q", "3"), Lane::User).await;
        let why = "the broker takes no publishes: low on memory".to_owned();
        assert_eq!(refused, Err(PublishError::Refused { why }));
    }
    assert_eq!(*consuming.state().borrow(), ConnectionState::Open);
    let held = arrived(&mut subscription);
    let acked = subscription.channel.settle(held[0].tag, Verdict::Ack);
    assert_eq!(acked, Settled::Done);
    assert_eq!(bodies(&arrived(&mut subscription)), ["2"]);
    broker.unblock();
    assert_eq!(*publishing.state().borrow(), ConnectionState::Open);
    let taken = publishing.publish(message("", "q", "3"), Lane::User).await;
    assert_eq!(taken, Ok(Routing::Routed));
}

#[tokio::test]
async fn a_broker_that_cancels_leaves_the_channel_usable() {
    let broker = broker(&[queue("q", [])]);
    fill(&broker, "q", &["1"]);
    let (_connection, mut subscription) = consumer(&broker, "q", 2).await;
    broker.cancel_consumers("q");
    fill(&broker, "q", &["2"]);
    let held = arrived(&mut subscription);
    assert_eq!(bodies(&held), ["1"]);
    assert_eq!(end(&mut subscription), End::Clean);
    assert_eq!(broker.consumers("q"), 0);
    let acked = subscription.channel.settle(held[0].tag, Verdict::Ack);
    assert_eq!(acked, Settled::Done);
    assert_eq!(bodies(&broker.take("q")), ["2"]);
}

#[tokio::test]
async fn a_channel_that_the_broker_closes_leaves_the_connection_open() {
    let broker = broker(&[queue("q", [])]);
    fill(&broker, "q", &["1"]);
    let (connection, mut subscription) = consumer(&broker, "q", 1).await;
    let held = arrived(&mut subscription);
    broker.close_channels("q");
    let ended = lost(&mut subscription);
    assert!(ended.why.starts_with("PRECONDITION_FAILED"));
    assert!(!ended.connection);
    let late = subscription.channel.settle(held[0].tag, Verdict::Ack);
    assert_eq!(late, Settled::Gone);
    assert_eq!(*connection.state().borrow(), ConnectionState::Open);
    let mut again = subscribe(&connection, "q", 1).await.unwrap();
    assert_eq!(redelivered(&arrived(&mut again)), [true]);
}

#[tokio::test(start_paused = true)]
async fn confirms_can_be_refused_late_or_lost() {
    let broker = broker(&[queue("q", [])]);
    let connection = connect(&broker, Role::Publish).await;
    broker.nack_next(1);
    let nacked = connection.publish(message("", "q", "1"), Lane::User).await;
    assert_eq!(nacked, Err(PublishError::Nacked));
    assert_eq!(broker.depth("q"), 0);

    broker.stall_confirms(true);
    let mut late = connection.publish(message("", "q", "2"), Lane::User);
    assert!((&mut late).now_or_never().is_none());
    assert_eq!(broker.depth("q"), 1);
    broker.stall_confirms(false);
    assert_eq!(late.await, Ok(Routing::Routed));

    broker.lose_confirms(1);
    let start = tokio::time::Instant::now();
    let lost = connection.publish(message("", "q", "3"), Lane::User).await;
    assert!(matches!(lost, Err(PublishError::Unknown { .. })));
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    assert_eq!(broker.depth("q"), 2);
    let confirmed = connection.publish(message("", "q", "4"), Lane::User).await;
    assert_eq!(confirmed, Ok(Routing::Routed));
}

#[tokio::test]
async fn waiting_for_a_condition_ends_with_the_change_that_fulfils_it() {
    let broker = broker(&[queue("q", [])]);
    let waiting = broker.wait_until(|view| view.depth("q") == 2);
    let mut waiting = std::pin::pin!(waiting);
    assert!(waiting.as_mut().now_or_never().is_none());
    fill(&broker, "q", &["1"]);
    assert!(waiting.as_mut().now_or_never().is_none());
    fill(&broker, "q", &["2"]);
    assert!(waiting.as_mut().now_or_never().is_some());
}
