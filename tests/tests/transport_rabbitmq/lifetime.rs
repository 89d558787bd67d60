use acemq::transport::{Lane, PublishError, Role, Routing, Transport, rabbitmq::RabbitMq};
use acemq_tests::{eventually, on_each_rabbitmq, rabbitmq::Node, unique, wait::within};
use futures_util::future::join_all;

use crate::bench::{Bench, SOON, closed, message};

/// The connections that the broker knows by this name.
async fn known(node: &Node, name: &str) -> usize {
    node.ctl(["list_connections", "client_properties"]).await.matches(name).count()
}

on_each_rabbitmq! {
    async fn a_close_waits_for_the_confirms_of_what_was_handed_over(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        let publishes: Vec<_> = (0..2000).map(|_| bench.publish.publish(message(&queue, "x"), Lane::User)).collect();
        within(SOON, "a close", bench.publish.close()).await;
        for answer in join_all(publishes).await {
            assert_eq!(answer, Ok(Routing::Routed));
        }
        assert_eq!(closed(&*bench.publish).await, "it was closed here");
        let late = bench.send(message(&queue, "x")).await;
        assert!(matches!(late, Err(PublishError::Refused { .. })), "{late:?}");
        // Again is nothing.
        within(SOON, "a second close", bench.publish.close()).await;
    }

    async fn what_is_dropped_is_closed(node: &'static Node) {
        let name = unique("name");
        let config = acemq::transport::rabbitmq::Config::new(node.url()).connection_name(&name);
        let transport = RabbitMq::with(config).unwrap();
        let connection = transport.connect(Role::Consume).await.unwrap();
        assert_eq!(known(node, &name).await, 1);
        // Inside an async context, and the transport first.
        drop(transport);
        drop(connection);
        eventually(SOON, "the end of the connection", async || match known(node, &name).await {
            0 => Ok(()),
            other => Err(other),
        })
        .await;
    }
}
