//! One of the two brokers, and what is written down about it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use acemq::{
    envelope::{Properties, Table, Value},
    topology::{Declaration, ExchangeKind},
    transport::{
        Connection, DeclareError, Incoming, Lane, Outgoing, Role, Settled, Subscribe, Subscription, Transport, Verdict,
        memory::Memory, rabbitmq::RabbitMq,
    },
};
use acemq_tests::{
    rabbitmq::{self, Version},
    wait::unique,
};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

/// How long a delivery may take.
const SOON: Duration = Duration::from_secs(20);

/// How long nothing comes when nothing is to come.
const QUIET: Duration = Duration::from_millis(100);

/// A broker that nobody else uses.
pub struct Lab {
    pub consume: Arc<dyn Connection>,
    pub publish: Arc<dyn Connection>,
    /// How the broker calls its virtual host in its texts.
    vhost: String,
    tally: Arc<Tally>,
}

/// How many deliveries came each time that a script took all there were. What the embedded broker gave is awaited of the
/// other, however slow the machine is.
#[derive(Default)]
pub struct Tally {
    awaited: Mutex<VecDeque<usize>>,
    came: Mutex<VecDeque<usize>>,
}

impl Lab {
    pub fn embedded() -> Self {
        let broker = Memory::private();
        let open = |role| broker.connect(role).now_or_never().unwrap().unwrap();
        Self {
            consume: open(Role::Consume),
            publish: open(Role::Publish),
            vhost: "/".to_owned(),
            tally: Arc::default(),
        }
    }

    pub async fn rabbitmq_3() -> Option<Self> {
        Self::rabbitmq(Version::V3).await
    }

    pub async fn rabbitmq_4() -> Option<Self> {
        Self::rabbitmq(Version::V4).await
    }

    async fn rabbitmq(version: Version) -> Option<Self> {
        if acemq_tests::needs::leave_out(version.server()) {
            return None;
        }
        let node = rabbitmq::shared(version).await;
        let vhost = rabbitmq::vhost(node).await;
        let broker = RabbitMq::new(node.url_for("guest", "guest", &vhost)).unwrap();
        let consume = broker.connect(Role::Consume).await.unwrap();
        let publish = broker.connect(Role::Publish).await.unwrap();
        Some(Self { consume, publish, vhost, tally: Arc::default() })
    }

    /// Awaits as many deliveries as another broker gave.
    pub fn await_as_many_as(&self, other: &Self) {
        *self.tally.awaited.lock().unwrap() = std::mem::take(&mut *other.tally.came.lock().unwrap());
    }

    /// The broker's answer to a declaration.
    pub async fn declare(&self, wanted: &Declaration) -> Result<(), DeclareError> {
        let plain = |text: String| text.replace(&format!("vhost '{}'", self.vhost), "vhost '/'");
        self.consume.declare(wanted).await.map_err(|error| match error {
            DeclareError::Mismatch { object, text } => DeclareError::Mismatch { object, text: plain(text) },
            DeclareError::Denied { object, text } => DeclareError::Denied { object, text: plain(text) },
            DeclareError::Refused { object, text } => DeclareError::Refused { object, text: plain(text) },
            other => other,
        })
    }

    /// Declares what must succeed.
    pub async fn all(&self, wanted: &[Declaration]) {
        for wanted in wanted {
            self.declare(wanted).await.unwrap();
        }
    }

    /// The broker's answer to a publish.
    pub async fn send(&self, message: Outgoing) -> String {
        format!("{:?}", self.publish.publish(message, Lane::User).await)
    }

    /// Puts messages into a queue and writes down the answers.
    pub async fn fill(&self, queue: &str, bodies: &[&str]) -> String {
        let mut answers = Vec::new();
        for body in bodies {
            answers.push(self.send(message("", queue, body)).await);
        }
        format!("{queue} takes {bodies:?}: {answers:?}")
    }

    pub async fn consumer(&self, queue: &str, prefetch: u16) -> Consumer {
        let wanted = Subscribe { queue: queue.to_owned(), prefetch, tag: unique("consumer") };
        Consumer { subscription: self.consume.subscribe(&wanted).await.unwrap(), tally: Arc::clone(&self.tally) }
    }

    /// Takes everything out of a queue and writes it down.
    pub async fn empty(&self, queue: &str) -> Vec<String> {
        let mut consumer = self.consumer(queue, 100).await;
        let mut lines = vec![format!("in {queue}:")];
        for incoming in consumer.all().await {
            consumer.settle(&incoming, Verdict::Ack);
            lines.push(line(&incoming));
        }
        consumer.close().await;
        lines
    }
}

/// Compares two records line by line.
pub fn same(embedded: &[String], real: &[String]) {
    for (at, pair) in embedded.iter().zip(real).enumerate() {
        assert_eq!(pair.0, pair.1, "line {at} of\n{}", real.join("\n"));
    }
    assert_eq!(embedded.len(), real.len());
}

pub struct Consumer {
    subscription: Subscription,
    tally: Arc<Tally>,
}

impl Consumer {
    /// What comes within a time in which it must come.
    pub async fn take(&mut self, count: usize) -> Vec<Incoming> {
        let mut taken = Vec::new();
        while taken.len() < count {
            let next = tokio::time::timeout(SOON, self.subscription.deliveries.next()).await;
            let Ok(Some(Ok(incoming))) = next else {
                panic!("{count} messages were awaited, and {} came: {next:?}", taken.len());
            };
            taken.push(incoming);
        }
        taken
    }

    /// What comes until nothing more does.
    pub async fn all(&mut self) -> Vec<Incoming> {
        let awaited = self.tally.awaited.lock().unwrap().pop_front().unwrap_or(0);
        let mut taken = Vec::new();
        loop {
            let patience = if taken.len() < awaited { SOON } else { QUIET };
            match tokio::time::timeout(patience, self.subscription.deliveries.next()).await {
                Ok(Some(Ok(incoming))) => taken.push(incoming),
                _ => break,
            }
        }
        self.tally.came.lock().unwrap().push_back(taken.len());
        taken
    }

    /// What comes next, however long it takes.
    pub async fn next(&mut self) -> Option<Incoming> {
        let next = self.subscription.deliveries.next().await;
        Some(next?.unwrap())
    }

    pub async fn cancel(&self) {
        self.subscription.channel.cancel().await;
    }

    pub async fn close(&self) {
        self.subscription.channel.close().await;
    }

    pub fn settle(&self, incoming: &Incoming, verdict: Verdict) {
        assert_eq!(self.subscription.channel.settle(incoming.tag, verdict), Settled::Done);
    }
}

/// A message in one line, without what differs between two runs or two versions.
pub fn line(incoming: &Incoming) -> String {
    let Incoming { exchange, routing_key, redelivered, properties, body, .. } = incoming;
    let body = String::from_utf8_lossy(body);
    let expiration = &properties.expiration;
    let mut headers = properties.headers.clone();
    // Up to 3.x the count is there from the start, and the last death is not.
    headers.retain(|name, _| name != "x-delivery-count" && !name.starts_with("x-last-death-"));
    let headers = timeless(Value::Table(headers));
    format!("{body} from {exchange:?} {routing_key:?} redelivered={redelivered} {expiration:?} {headers:?}")
}

/// A value with every time set to nought.
pub fn timeless(value: Value) -> Value {
    match value {
        Value::Timestamp(_) => Value::Timestamp(0),
        Value::Array(items) => Value::Array(items.into_iter().map(timeless).collect()),
        Value::Table(table) => {
            Value::Table(table.into_iter().map(|(name, value)| (name, timeless(value))).collect::<Table>())
        }
        other => other,
    }
}

pub fn bodies(messages: &[Incoming]) -> Vec<String> {
    messages
        .iter()
        .map(|incoming| format!("{}, redelivered={}", String::from_utf8_lossy(&incoming.body), incoming.redelivered))
        .collect()
}

pub fn queue(name: &str, arguments: &[(&str, Value)]) -> Declaration {
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Declaration::Queue { name: name.to_owned(), arguments }
}

pub fn exchange(name: &str, kind: ExchangeKind) -> Declaration {
    Declaration::Exchange { name: name.to_owned(), kind }
}

pub fn binding(queue: &str, exchange: &str, routing_key: &str) -> Declaration {
    Declaration::Binding { queue: queue.to_owned(), exchange: exchange.to_owned(), routing_key: routing_key.to_owned() }
}

pub fn message(exchange: &str, routing_key: &str, body: &str) -> Outgoing {
    Outgoing {
        exchange: exchange.to_owned(),
        routing_key: routing_key.to_owned(),
        mandatory: true,
        properties: Properties { message_id: Some(unique("message")), delivery_mode: Some(2), ..Properties::default() },
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}
