//! What happens when the broker or the network fails.

use std::time::{Duration, Instant};

use acemq::transport::{
    ConnectionState, DeclareError, Lane, PublishError, Role, Routing, Settled, Subscribe, Transport, Verdict,
    rabbitmq::{Config, RabbitMq},
};
use acemq::{envelope::Table, topology::Declaration};
use acemq_tests::{
    needs, on_each_rabbitmq,
    proxy::{Direction, Proxy},
    rabbitmq::{Node, Version},
    unique,
    wait::within,
};
use futures_util::{StreamExt, future::join_all};

use crate::bench::{Bench, SOON, closed, is_open, message, next};

/// Everything that hangs on two connections ends with them, whatever ended them.
async fn everything_ends(node: &Node, end: impl AsyncFnOnce()) {
    let bench = Bench::new(node).await;
    let queue = bench.queue().await;
    bench.fill(&queue, 10).await;
    let mut subscription = bench.subscribe(&queue, 1).await;
    let tag = next(&mut subscription).await.tag;
    let mut states = [bench.consume.state(), bench.publish.state()];
    let publishes: Vec<_> = (0..500).map(|_| bench.publish.publish(message(&queue, "x"), Lane::User)).collect();
    end().await;
    let ended = Instant::now();
    for state in &mut states {
        let is_closed = |state: &ConnectionState| matches!(state, ConnectionState::Closed { .. });
        within(SOON, "the end of a connection", state.wait_for(is_closed)).await.unwrap();
    }
    // A second on a machine that does nothing else.
    assert!(ended.elapsed() < Duration::from_secs(5), "{:?}", ended.elapsed());

    for answer in within(SOON, "all publishes", join_all(publishes)).await {
        let told =
            matches!(&answer, Ok(Routing::Routed) | Err(PublishError::Unknown { .. } | PublishError::Refused { .. }));
        assert!(told, "{answer:?}");
    }
    let late = bench.send(message(&queue, "x")).await;
    assert!(matches!(late, Err(PublishError::Refused { .. })), "{late:?}");
    let lost = within(SOON, "the end", subscription.deliveries.next()).await.expect("an error first").unwrap_err();
    assert!(lost.connection, "{lost:?}");
    assert!(subscription.deliveries.next().await.is_none());
    assert_eq!(subscription.channel.settle(tag, Verdict::Ack), Settled::Gone);
    let wanted = Declaration::QueueExists { name: queue.clone() };
    let refused = within(SOON, "a declaration", bench.consume.declare(&wanted)).await;
    assert!(matches!(refused, Err(DeclareError::Lost { .. })), "{refused:?}");
    let wanted = Subscribe { queue, prefetch: 1, tag: unique("tag") };
    let refused = within(SOON, "a subscription", bench.consume.subscribe(&wanted)).await;
    assert!(matches!(refused, Err(DeclareError::Lost { .. })), "{refused:?}");
    within(SOON, "a cancel", subscription.channel.cancel()).await;
    within(SOON, "a close", subscription.channel.close()).await;
    bench.close().await;
}

async fn a_killed_broker_ends_everything(version: Version) {
    let node = Node::start(version).await;
    everything_ends(&node, async || node.kill()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_broker_ends_everything_3() {
    needs!(RabbitMq3);
    a_killed_broker_ends_everything(Version::V3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_broker_ends_everything_4() {
    needs!(RabbitMq4);
    a_killed_broker_ends_everything(Version::V4).await;
}

/// An alarm, from its start to its end.
async fn a_blocked_broker(version: Version) {
    let node = Node::start(version).await;
    let patience = Duration::from_secs(2);
    let bench = Bench::with(Config::new(node.url()).confirm_timeout(patience).close_timeout(patience)).await;
    let queue = bench.queue().await;
    bench.fill(&queue, 2).await;
    let mut subscription = bench.subscribe(&queue, 1).await;
    let tag = next(&mut subscription).await.tag;
    node.block_memory().await;

    // The first publish is written and makes the broker say that it blocks.
    let first = bench.publish.publish(message(&queue, "x"), Lane::User);
    let mut state = bench.publish.state();
    let is_blocked = |state: &ConnectionState| matches!(state, ConnectionState::Blocked { .. });
    let blocked = within(SOON, "the block", state.wait_for(is_blocked)).await.unwrap().clone();
    assert!(matches!(&blocked, ConnectionState::Blocked { reason } if reason.contains("memory")), "{blocked:?}");
    for lane in [Lane::User, Lane::Hop] {
        let refused =
            within(Duration::from_secs(1), "a refusal", bench.publish.publish(message(&queue, "x"), lane)).await;
        assert!(matches!(&refused, Err(PublishError::Refused { why }) if why.contains("memory")), "{refused:?}");
    }
    let unknown = within(SOON, "the first publish", first).await;
    assert!(matches!(unknown, Err(PublishError::Unknown { .. })), "{unknown:?}");
    // Consuming goes on.
    assert_eq!(subscription.channel.settle(tag, Verdict::Ack), Settled::Done);
    next(&mut subscription).await;
    assert!(is_open(&*bench.consume));

    // A close does not wait for the end of the alarm.
    let other = bench.transport.connect(Role::Publish).await.unwrap();
    let stuck = other.publish(message(&queue, "x"), Lane::User);
    let mut state_of_other = other.state();
    within(SOON, "the block", state_of_other.wait_for(is_blocked)).await.unwrap();
    let started = Instant::now();
    within(SOON, "a close", other.close()).await;
    assert!(started.elapsed() < patience * 5, "{:?}", started.elapsed());
    let unknown = within(SOON, "the stuck publish", stuck).await;
    assert!(matches!(unknown, Err(PublishError::Unknown { .. })), "{unknown:?}");

    node.unblock().await;
    within(SOON, "the end of the block", state.wait_for(|state| *state == ConnectionState::Open)).await.unwrap();
    assert_eq!(bench.send(message(&queue, "x")).await, Ok(Routing::Routed));
    assert_eq!(bench.send(message("nowhere", "x")).await, Ok(Routing::Returned { text: "NO_ROUTE".to_owned() }));
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_broker_refuses_publishes_and_nothing_else_3() {
    needs!(RabbitMq3);
    a_blocked_broker(Version::V3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_broker_refuses_publishes_and_nothing_else_4() {
    needs!(RabbitMq4);
    a_blocked_broker(Version::V4).await;
}

/// The limit of the broker is lower than that of its version, and nobody told acemq.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_bodies_is_learned_from_a_refusal() {
    needs!(RabbitMq3);
    let node = Node::builder(Version::V3).conf("max_message_size = 10000").start().await;
    let bench = Bench::new(&node).await;
    let queue = bench.queue().await;
    for _ in 0..2 {
        let refused = bench.send(message(&queue, &"x".repeat(10_001))).await;
        assert_eq!(refused, Err(PublishError::TooLarge { size: 10_001, limit: 10_000 }));
    }
    assert_eq!(bench.send(message(&queue, &"x".repeat(10_000))).await, Ok(Routing::Routed));
}

/// A broker that forgets a delivery takes the channel down, and no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_channel_is_no_lost_connection() {
    needs!(RabbitMq3);
    let often = "[{rabbit, [{channel_tick_interval, 500}]}].";
    let node = Node::builder(Version::V3).conf("consumer_timeout = 1000").advanced(often).start().await;
    let bench = Bench::new(&node).await;
    let queue = bench.queue().await;
    bench.fill(&queue, 1).await;
    let mut subscription = bench.subscribe(&queue, 1).await;
    let tag = next(&mut subscription).await.tag;
    let lost = within(SOON, "the end", subscription.deliveries.next()).await.unwrap().unwrap_err();
    assert!(!lost.connection && lost.why.contains("timed out"), "{lost:?}");
    assert_eq!(subscription.channel.settle(tag, Verdict::Ack), Settled::Gone);
    assert!(is_open(&*bench.consume));
    let mut again = bench.subscribe(&queue, 1).await;
    assert!(next(&mut again).await.redelivered);
}

on_each_rabbitmq! {
    async fn an_operator_or_a_network_that_closes_ends_everything(node: &'static Node) {
        for way in ["fin", "reset"] {
            let proxy = Proxy::start(&node.url()).await;
            let transport = RabbitMq::new(proxy.url()).unwrap();
            let consume = transport.connect(Role::Consume).await.unwrap();
            let publish = transport.connect(Role::Publish).await.unwrap();
            let queue = unique("q");
            let wanted = Declaration::Queue { name: queue.clone(), arguments: Table::new() };
            consume.declare(&wanted).await.unwrap();
            let publishes: Vec<_> = (0..500).map(|_| publish.publish(message(&queue, "x"), Lane::Hop)).collect();
            match way {
                "fin" => proxy.cut().await,
                _ => proxy.reset().await,
            }
            closed(&*consume).await;
            closed(&*publish).await;
            within(SOON, "all publishes", join_all(publishes)).await;
            within(SOON, "a close", consume.close()).await;
            within(SOON, "a close", publish.close()).await;
        }
    }

    async fn a_network_that_swallows_everything_is_noticed_within_two_heartbeats(node: &'static Node) {
        let heartbeat = Duration::from_secs(4);
        let proxy = Proxy::start(&node.url()).await;
        let transport = RabbitMq::with(Config::new(proxy.url()).heartbeat(heartbeat)).unwrap();
        let connection = transport.connect(Role::Publish).await.unwrap();
        assert_eq!(connection.publish(message("nowhere", "x"), Lane::User).await, Ok(Routing::Returned { text: "NO_ROUTE".to_owned() }));
        proxy.stall(Direction::ToServer);
        proxy.stall(Direction::ToClient);
        let stalled = Instant::now();
        let publish = connection.publish(message("nowhere", "x"), Lane::User);
        let reason = closed(&*connection).await;
        assert!(reason.contains("heartbeat"), "{reason}");
        // And one more for a slow machine.
        assert!(stalled.elapsed() < heartbeat * 3, "{:?}", stalled.elapsed());
        assert!(matches!(within(SOON, "a publish", publish).await, Err(PublishError::Unknown { .. })));
        within(SOON, "a close", connection.close()).await;
    }

    async fn a_connection_lost_in_the_middle_of_a_write_says_what_was_written(node: &'static Node) {
        let proxy = Proxy::start(&node.url()).await;
        let transport = RabbitMq::new(proxy.url()).unwrap();
        let connection = transport.connect(Role::Publish).await.unwrap();
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        assert_eq!(connection.publish(message(&queue, "x"), Lane::User).await, Ok(Routing::Routed));
        let bodies = (0..600).map(|number| message(&queue, &format!("{number}:{}", "x".repeat(10_000))));
        proxy.reset_mid_write();
        let publishes = bodies.map(|message| connection.publish(message, Lane::User));
        let answers = within(SOON, "all publishes", join_all(publishes)).await;
        closed(&*connection).await;
        let arrived = acemq_tests::amqp::Client::connect(&node.url()).await.take_all(&queue).await;
        let arrived: Vec<usize> = arrived.iter().filter_map(|message| message.text().split_once(':')?.0.parse().ok()).collect();
        for (number, answer) in answers.iter().enumerate() {
            match answer {
                Ok(Routing::Routed) => assert!(arrived.contains(&number), "{number} is lost"),
                // A refused one may be sent again without a thought, so it must not be there.
                Err(PublishError::Refused { .. }) => assert!(!arrived.contains(&number), "{number} is there"),
                Err(PublishError::Unknown { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(answers.iter().any(|answer| matches!(answer, Err(PublishError::Refused { .. }))), "{answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_ends_everything_3() {
    needs!(RabbitMq3);
    let node = Node::start(Version::V3).await;
    everything_ends(&node, async || node.close_all_connections().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_ends_everything_4() {
    needs!(RabbitMq4);
    let node = Node::start(Version::V4).await;
    everything_ends(&node, async || node.close_all_connections().await).await;
}

/// The application's threads are all blocked for longer than the broker waits for a heartbeat.
#[tokio::test]
async fn an_application_that_blocks_its_thread_keeps_its_connection() {
    needs!(RabbitMq4);
    let node = Node::start(Version::V4).await;
    let bench = Bench::with(Config::new(node.url()).heartbeat(Duration::from_secs(1))).await;
    let queue = bench.queue().await;
    std::thread::sleep(Duration::from_secs(6));
    assert!(is_open(&*bench.consume) && is_open(&*bench.publish));
    assert_eq!(bench.send(message(&queue, "x")).await, Ok(Routing::Routed));
}
