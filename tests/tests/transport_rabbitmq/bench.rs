//! What the tests of this suite have in common.

use std::{sync::Arc, time::Duration};

use acemq::{
    envelope::{Properties, Table},
    topology::Declaration,
    transport::{
        Connection, ConnectionState, Incoming, Lane, Outgoing, PublishError, Role, Routing, Subscribe, Subscription,
        Transport,
        rabbitmq::{Config, RabbitMq},
    },
};
use acemq_tests::{rabbitmq::Node, unique, wait::within};
use bytes::Bytes;
use futures_util::StreamExt;

/// Long enough for a slow machine, short enough to be told.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// A transport with a connection of each role.
pub(crate) struct Bench {
    pub(crate) transport: RabbitMq,
    pub(crate) consume: Arc<dyn Connection>,
    pub(crate) publish: Arc<dyn Connection>,
}

impl Bench {
    pub(crate) async fn new(node: &Node) -> Self {
        Self::with(Config::new(node.url())).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let transport = RabbitMq::with(config).unwrap();
        let consume = transport.connect(Role::Consume).await.unwrap();
        let publish = transport.connect(Role::Publish).await.unwrap();
        Self { transport, consume, publish }
    }

    /// A new classic queue.
    pub(crate) async fn queue(&self) -> String {
        self.queue_with(Table::new()).await
    }

    pub(crate) async fn queue_with(&self, arguments: Table) -> String {
        let name = unique("q");
        self.consume.declare(&Declaration::Queue { name: name.clone(), arguments }).await.unwrap();
        name
    }

    pub(crate) async fn send(&self, message: Outgoing) -> Result<Routing, PublishError> {
        within(SOON, "a publish", self.publish.publish(message, Lane::User)).await
    }

    pub(crate) async fn fill(&self, queue: &str, count: usize) {
        let sends = (0..count).map(|number| self.publish.publish(message(queue, &number.to_string()), Lane::User));
        let sent = within(SOON * 4, "filling a queue", futures_util::future::join_all(sends)).await;
        assert!(sent.into_iter().all(|sent| sent == Ok(Routing::Routed)));
    }

    pub(crate) async fn subscribe(&self, queue: &str, prefetch: u16) -> Subscription {
        let wanted = Subscribe { queue: queue.to_owned(), prefetch, tag: unique("tag") };
        self.consume.subscribe(&wanted).await.unwrap()
    }

    pub(crate) async fn close(self) {
        within(SOON, "a close", self.consume.close()).await;
        within(SOON, "a close", self.publish.close()).await;
    }
}

/// A persistent, mandatory message to a queue, with an id of its own.
pub(crate) fn message(queue: &str, body: &str) -> Outgoing {
    Outgoing {
        exchange: String::new(),
        routing_key: queue.to_owned(),
        mandatory: true,
        properties: Properties { message_id: Some(unique("id")), delivery_mode: Some(2), ..Properties::default() },
        body: Bytes::from(body.to_owned()),
    }
}

/// The next delivery, which must come.
pub(crate) async fn next(subscription: &mut Subscription) -> Incoming {
    let item = within(SOON, "a delivery", subscription.deliveries.next()).await;
    item.expect("a delivery, and not the end").expect("a delivery, and no loss")
}

/// Waits until a connection is gone and gives the reason.
pub(crate) async fn closed(connection: &dyn Connection) -> String {
    let mut state = connection.state();
    let is_closed = |state: &ConnectionState| matches!(state, ConnectionState::Closed { .. });
    let state = within(SOON, "the end of a connection", state.wait_for(is_closed)).await.unwrap().clone();
    match state {
        ConnectionState::Closed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn is_open(connection: &dyn Connection) -> bool {
    *connection.state().borrow() == ConnectionState::Open
}
