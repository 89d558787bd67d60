//! A plain AMQP client for tests that look at a broker from outside, with no line of acemq in it.
//!
//! Every call has a deadline and fails the test when it does not succeed; what a test expects to fail it does with
//! [`Client::channel`] itself.

use std::future::Future;
use std::time::Duration;

use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, ConfirmSelectOptions,
    ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions, QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable, LongString};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ExchangeKind};

use crate::wait::within;

/// How long any one call may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// A connection of the test with a channel in confirm mode.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    channel: Channel,
}

/// A message as it lay in a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// The exchange that it was published to.
    pub exchange: String,
    /// The routing key.
    pub routing_key: String,
    /// Whether the broker says that it was delivered before.
    pub redelivered: bool,
    /// All its properties, headers included.
    pub properties: BasicProperties,
    /// Its body.
    pub body: Vec<u8>,
}

impl Received {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The header `name`.
    pub fn header(&self, name: &str) -> Option<&AMQPValue> {
        self.properties.headers().as_ref()?.inner().get(name)
    }

    /// The header `name`, if it is a string.
    pub fn text_header(&self, name: &str) -> Option<String> {
        match self.header(name)? {
            AMQPValue::LongString(text) => Some(text.to_string()),
            AMQPValue::ShortString(text) => Some(text.to_string()),
            _ => None,
        }
    }

    /// The header `name`, if it is a whole number of whatever width.
    pub fn number_header(&self, name: &str) -> Option<i64> {
        match self.header(name)? {
            AMQPValue::ShortShortInt(number) => Some((*number).into()),
            AMQPValue::ShortShortUInt(number) => Some((*number).into()),
            AMQPValue::ShortInt(number) => Some((*number).into()),
            AMQPValue::ShortUInt(number) => Some((*number).into()),
            AMQPValue::LongInt(number) => Some((*number).into()),
            AMQPValue::LongUInt(number) => Some((*number).into()),
            AMQPValue::LongLongInt(number) => Some(*number),
            AMQPValue::Timestamp(number) => i64::try_from(*number).ok(),
            _ => None,
        }
    }

    /// The names of all headers, sorted.
    pub fn header_names(&self) -> Vec<String> {
        let headers = self.properties.headers().as_ref();
        headers.map(|table| table.inner().keys().map(ToString::to_string).collect()).unwrap_or_default()
    }
}

impl Client {
    /// Connects to `url`.
    pub async fn connect(url: &str) -> Self {
        let connection = act("connect", Connection::connect(url, ConnectionProperties::default())).await;
        let channel = act("open a channel", connection.create_channel()).await;
        act("ask for confirms", channel.confirm_select(ConfirmSelectOptions::default())).await;
        Self { connection, channel }
    }

    /// The connection, for what this type does not do.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The channel on which this type does everything; one that is expected to be closed by the broker is better
    /// opened by [`Client::open_channel`].
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Opens another channel.
    pub async fn open_channel(&self) -> Channel {
        act("open a channel", self.connection.create_channel()).await
    }

    /// Declares a durable queue with `arguments`.
    pub async fn declare(&self, queue: &str, arguments: FieldTable) {
        let declared = self.channel.queue_declare(queue.into(), QueueDeclareOptions::durable(), arguments);
        act(&format!("declare {queue}"), declared).await;
    }

    /// Declares a durable exchange.
    pub async fn declare_exchange(&self, exchange: &str, kind: ExchangeKind) {
        let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let declared = self.channel.exchange_declare(exchange.into(), kind, options, FieldTable::default());
        act(&format!("declare {exchange}"), declared).await;
    }

    /// Binds `queue` to `exchange`.
    pub async fn bind(&self, queue: &str, exchange: &str, key: &str) {
        let options = QueueBindOptions::default();
        let bound = self.channel.queue_bind(queue.into(), exchange.into(), key.into(), options, FieldTable::default());
        act(&format!("bind {queue} to {exchange}"), bound).await;
    }

    /// Publishes as mandatory and persistent with JSON as content type, and no header, to a queue by its name.
    pub async fn send(&self, queue: &str, body: &str) {
        let properties = BasicProperties::default().with_content_type("application/json".into()).with_delivery_mode(2);
        self.publish("", queue, body.as_bytes(), properties).await;
    }

    /// Publishes as mandatory and waits for the confirm; it must be routed.
    pub async fn publish(&self, exchange: &str, key: &str, body: &[u8], properties: BasicProperties) {
        let confirmation = self.try_publish(exchange, key, body, properties).await;
        assert_eq!(confirmation, Confirmation::Ack(None), "a publish to {exchange:?} with the key {key:?}");
    }

    /// Publishes as mandatory and gives the confirm.
    pub async fn try_publish(
        &self,
        exchange: &str,
        key: &str,
        body: &[u8],
        properties: BasicProperties,
    ) -> Confirmation {
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let publish =
            async { self.channel.basic_publish(exchange.into(), key.into(), options, body, properties).await?.await };
        act(&format!("publish to {exchange:?} with the key {key:?}"), publish).await
    }

    /// Takes one message out of `queue`, if one is ready.
    pub async fn get(&self, queue: &str) -> Option<Received> {
        let message = self.channel.basic_get(queue.into(), BasicGetOptions::default());
        let message = act(&format!("get from {queue}"), message).await?;
        let tag = message.delivery_tag;
        act("acknowledge", self.channel.basic_ack(tag, BasicAckOptions::default())).await;
        Some(received(message))
    }

    /// Takes every message that is ready out of `queue`.
    pub async fn take_all(&self, queue: &str) -> Vec<Received> {
        let mut all = Vec::new();
        while let Some(message) = self.get(queue).await {
            all.push(message);
        }
        all
    }

    /// Looks at every message that is ready in `queue` and puts them back; they count as redelivered then.
    pub async fn peek_all(&self, queue: &str) -> Vec<Received> {
        let channel = self.open_channel().await;
        let mut all = Vec::new();
        let mut last = None;
        while let Some(message) = act("get", channel.basic_get(queue.into(), BasicGetOptions::default())).await {
            last = Some(message.delivery_tag);
            all.push(received(message));
        }
        if let Some(tag) = last {
            let options = BasicNackOptions { multiple: true, requeue: true };
            act("put back", channel.basic_nack(tag, options)).await;
        }
        act("close a channel", channel.close(200, "looked".into())).await;
        all
    }

    /// How many messages are ready in `queue`, or `None` if there is no such queue.
    pub async fn ready(&self, queue: &str) -> Option<u32> {
        Some(self.inspect(queue).await?.0)
    }

    /// How many consumers `queue` has, or `None` if there is no such queue.
    pub async fn consumers(&self, queue: &str) -> Option<u32> {
        Some(self.inspect(queue).await?.1)
    }

    async fn inspect(&self, queue: &str) -> Option<(u32, u32)> {
        // The broker closes the channel when the queue is not there, so it is one of its own.
        let channel = self.open_channel().await;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let found = channel.queue_declare(queue.into(), options, FieldTable::default());
        let found = within(DEADLINE, "inspect a queue", found).await;
        let counts = match found {
            Ok(found) => Some((found.message_count(), found.consumer_count())),
            Err(error) if error.to_string().contains("NOT_FOUND") => None,
            Err(error) => panic!("inspect {queue}: {error}"),
        };
        if counts.is_some() {
            act("close a channel", channel.close(200, "looked".into())).await;
        }
        counts
    }

    /// Removes every message that is ready in `queue`.
    pub async fn purge(&self, queue: &str) -> u32 {
        act(&format!("purge {queue}"), self.channel.queue_purge(queue.into(), QueuePurgeOptions::default())).await
    }

    /// Deletes `queue` with everything in it; no such queue is fine too.
    pub async fn delete(&self, queue: &str) {
        act(&format!("delete {queue}"), self.channel.queue_delete(queue.into(), QueueDeleteOptions::default())).await;
    }

    /// Closes the connection.
    pub async fn close(&self) {
        act("close", self.connection.close(200, "done".into())).await;
    }
}

/// A table of arguments or headers.
///
/// ```
/// let arguments = acemq_tests::amqp::table([("x-queue-type", acemq_tests::amqp::text("quorum"))]);
/// assert_eq!(arguments.inner().len(), 1);
/// ```
pub fn table<'a>(entries: impl IntoIterator<Item = (&'a str, AMQPValue)>) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in entries {
        table.insert(name.into(), value);
    }
    table
}

/// A string as a value of a [`table`].
pub fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(LongString::from(text))
}

fn received(message: lapin::message::BasicGetMessage) -> Received {
    let delivery = message.delivery;
    Received {
        exchange: delivery.exchange.to_string(),
        routing_key: delivery.routing_key.to_string(),
        redelivered: delivery.redelivered,
        properties: delivery.properties,
        body: delivery.data,
    }
}

/// Awaits `future` with the deadline of this module and fails with `what` when it fails.
async fn act<T>(what: &str, future: impl Future<Output = lapin::Result<T>>) -> T {
    match within(DEADLINE, what, future).await {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}
