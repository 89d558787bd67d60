//! A broker to experiment on, seen from outside the application.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use acemq::{
    App, Running,
    envelope::{Properties, Table, Value},
    topology::Declaration,
    transport::{
        Connection, Incoming, Lane, Outgoing, Role, Routing, Subscribe, Transport, Verdict, memory::Memory,
        rabbitmq::RabbitMq,
    },
};
use acemq_tests::{
    rabbitmq::{self, Version},
    wait::unique,
};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::watch;

/// Long enough for a slow machine, short enough to be told.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A broker of one test.
pub(crate) struct Lab {
    transport: Arc<dyn Transport>,
    publish: tokio::sync::OnceCell<Arc<dyn Connection>>,
    consume: tokio::sync::OnceCell<Arc<dyn Connection>>,
}

impl Lab {
    pub(crate) fn embedded() -> Self {
        Self::over(Arc::new(Memory::private()))
    }

    pub(crate) async fn rabbitmq_3() -> Option<Self> {
        Self::rabbitmq(Version::V3).await
    }

    pub(crate) async fn rabbitmq_4() -> Option<Self> {
        Self::rabbitmq(Version::V4).await
    }

    async fn rabbitmq(version: Version) -> Option<Self> {
        if acemq_tests::needs::leave_out(version.server()) {
            return None;
        }
        let node = rabbitmq::shared(version).await;
        // Queues have the same names in every test.
        let vhost = rabbitmq::vhost(node).await;
        let url = node.url_for("guest", "guest", &vhost);
        Some(Self::over(Arc::new(RabbitMq::new(&url).unwrap())))
    }

    fn over(transport: Arc<dyn Transport>) -> Self {
        Self { transport, publish: tokio::sync::OnceCell::new(), consume: tokio::sync::OnceCell::new() }
    }

    pub(crate) async fn start(&self, app: App) -> Running {
        app.transport(Arc::clone(&self.transport)).start().await.unwrap()
    }

    async fn connection(&self, role: Role) -> &Arc<dyn Connection> {
        let cell = match role {
            Role::Publish => &self.publish,
            Role::Consume => &self.consume,
        };
        cell.get_or_init(async || self.transport.connect(role).await.unwrap()).await
    }

    pub(crate) async fn declare(&self, declaration: Declaration) {
        self.connection(Role::Consume).await.declare(&declaration).await.unwrap();
    }

    /// Puts a message into a queue, as a stranger would.
    pub(crate) async fn put(&self, queue: &str, body: impl Into<Bytes>, properties: Properties) {
        let message = Outgoing {
            exchange: String::new(),
            routing_key: queue.to_owned(),
            mandatory: true,
            properties,
            body: body.into(),
        };
        let routing = self.connection(Role::Publish).await.publish(message, Lane::User).await.unwrap();
        assert_eq!(routing, Routing::Routed);
    }

    /// Takes so many messages out of a queue.
    pub(crate) async fn take(&self, queue: &str, count: usize) -> Vec<Incoming> {
        let wanted = Subscribe { queue: queue.to_owned(), prefetch: 100, tag: unique("taker") };
        let mut subscription = self.connection(Role::Consume).await.subscribe(&wanted).await.unwrap();
        let mut taken = Vec::new();
        while taken.len() < count {
            let next = tokio::time::timeout(SOON, subscription.deliveries.next()).await;
            let Ok(Some(Ok(incoming))) = next else {
                panic!("{count} messages were awaited in `{queue}`, and {} came: {next:?}", taken.len());
            };
            let _ = subscription.channel.settle(incoming.tag, Verdict::Ack);
            taken.push(incoming);
        }
        subscription.channel.close().await;
        taken
    }

    pub(crate) async fn take_one(&self, queue: &str) -> Incoming {
        self.take(queue, 1).await.remove(0)
    }
}

/// What the handlers of a test saw.
#[derive(Clone)]
pub(crate) struct Log {
    seen: Arc<Mutex<Vec<Seen>>>,
    count: watch::Sender<usize>,
}

/// One call of a handler.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub what: String,
    pub attempt: u32,
    pub at: tokio::time::Instant,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { seen: Arc::default(), count: watch::Sender::new(0) }
    }

    /// Notes a call and says how many there were with this text before it.
    pub(crate) fn note(&self, what: &str, attempt: u32) -> usize {
        let mut seen = self.seen.lock().unwrap();
        let before = seen.iter().filter(|seen| seen.what == what).count();
        seen.push(Seen { what: what.to_owned(), attempt, at: tokio::time::Instant::now() });
        self.count.send_replace(seen.len());
        before
    }

    /// Waits for so many calls, and gives them.
    pub(crate) async fn calls(&self, count: usize) -> Vec<Seen> {
        let mut counts = self.count.subscribe();
        let waited = tokio::time::timeout(SOON, counts.wait_for(|seen| *seen >= count)).await;
        let seen = self.seen.lock().unwrap().clone();
        assert!(waited.is_ok(), "{count} calls were awaited, and {} came: {seen:?}", seen.len());
        seen
    }

    pub(crate) fn attempts(&self) -> Vec<u32> {
        self.seen.lock().unwrap().iter().map(|seen| seen.attempt).collect()
    }
}

/// The properties of a message in JSON with this id and these headers.
pub(crate) fn with_headers(id: &str, headers: Table) -> Properties {
    Properties {
        content_type: Some("application/json".to_owned()),
        message_id: Some(id.to_owned()),
        headers,
        ..Properties::default()
    }
}

pub(crate) fn plain(id: &str) -> Properties {
    with_headers(id, Table::new())
}

pub(crate) fn number(message: &Incoming, header: &str) -> acemq::envelope::headers::Number {
    acemq::envelope::headers::number(message.properties.headers.get(header).unwrap_or(&Value::Void))
}

pub(crate) fn text<'a>(message: &'a Incoming, header: &str) -> Option<&'a str> {
    message.properties.headers.get(header).and_then(Value::as_text)
}
