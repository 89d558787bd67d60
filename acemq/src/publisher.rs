//! Publishing: every message confirmed, and an unroutable one an error.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde::Serialize;
use tokio::{runtime::Handle, sync::Semaphore, time::Instant};
use tokio_util::task::TaskTracker;

use crate::{
    engine::Link,
    envelope::{Codec, DecodeError, DefaultCodec, Envelope, EnvelopeError, Properties, Value, headers},
    handler::{Context, ExtractError, FromContext},
    telemetry::{PublishOutcome, PublisherTelemetry},
    transport::{Lane, Outgoing, PublishError, Routing},
};

/// How many publishes may wait for their confirm at once.
const OUTSTANDING: usize = 1_000;

/// Publishes messages; cheap to clone.
///
/// An argument of a consumer function, or from `Running::publisher`.
///
/// # Examples
/// ```
/// # #[derive(serde::Serialize)] struct Order { total_cents: u64 }
/// # async fn example(publisher: acemq::Publisher) -> Result<(), acemq::SendError> {
/// let receipt = publisher.to("orders", "order.placed").send(&Order { total_cents: 1200 }).await?;
/// println!("{} after {:?}", receipt.id, receipt.latency);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Publisher(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    link: Link,
    permits: Arc<Semaphore>,
    origin: String,
    paused: AtomicBool,
    closed: AtomicBool,
    outstanding: TaskTracker,
    /// Where the answers are awaited: publishes may come from threads that have no runtime.
    runtime: Handle,
    telemetry: PublisherTelemetry,
}

/// A publish that was confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The id of the message.
    pub id: String,
    /// From the call to the confirm.
    pub latency: Duration,
}

/// A publish that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// Nothing was sent: it is safe to send again.
    #[error("nothing was sent: {why}")]
    Refused {
        /// The reason: paused, blocked by the broker, or no connection.
        why: String,
    },
    /// The message was sent and no answer came: it may or may not have arrived. Sending it again under its id is safe where
    /// consumers keep duplicates out.
    #[error("message {id} was sent and its outcome is unknown: {why}")]
    Unknown {
        /// The id of the message.
        id: String,
        /// The reason.
        why: String,
    },
    /// The broker took the message and no queue did.
    #[error(
        "no queue takes a message to exchange `{exchange}` with key `{routing_key}`: bind one, or publish with `optional`"
    )]
    Unroutable {
        /// The exchange.
        exchange: String,
        /// The routing key.
        routing_key: String,
    },
    /// The broker did not take the message.
    #[error("the broker did not take the message: {0}")]
    Failed(PublishError),
    /// The value cannot be written by the codec.
    #[error("the message cannot be written: {0}")]
    Encode(DecodeError),
    /// The envelope is wrong.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// A header with the prefix that belongs to acemq.
    #[error("header `{name}` is reserved: names that start with `x-acemq-` belong to acemq")]
    ReservedHeader {
        /// The header.
        name: String,
    },
}

impl Publisher {
    pub(crate) fn new(link: Link, origin: String) -> Self {
        Self(Arc::new(Inner {
            link,
            permits: Arc::new(Semaphore::new(OUTSTANDING)),
            origin,
            paused: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            outstanding: TaskTracker::new(),
            runtime: Handle::current(),
            telemetry: PublisherTelemetry::new(),
        }))
    }

    /// Begins a publish to an exchange with a routing key; the empty exchange routes to the queue that the key names.
    pub fn to(&self, exchange: impl Into<String>, routing_key: impl Into<String>) -> Publication {
        Publication {
            publisher: self.clone(),
            exchange: exchange.into(),
            routing_key: routing_key.into(),
            kind: None,
            version: 1,
            id: None,
            cause: None,
            mandatory: true,
            delivery_mode: 2,
            headers: Vec::new(),
        }
    }

    /// Begins a publish straight to a queue.
    pub fn to_queue(&self, queue: impl Into<String>) -> Publication {
        self.to("", queue)
    }

    pub(crate) fn pause(&self) {
        self.0.paused.store(true, Ordering::SeqCst);
    }

    pub(crate) fn resume(&self) {
        self.0.paused.store(false, Ordering::SeqCst);
    }

    /// The name of this process in the messages that it publishes.
    #[cfg(feature = "actuator")]
    pub(crate) fn origin(&self) -> &str {
        &self.0.origin
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.0.paused.load(Ordering::SeqCst)
    }

    /// Waits until every publish has its answer.
    pub(crate) async fn drain(&self) {
        self.0.outstanding.close();
        self.0.outstanding.wait().await;
        self.0.outstanding.reopen();
    }

    /// Takes no further publish, and waits until every one that was taken has its answer.
    pub(crate) async fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.drain().await;
    }
}

impl FromContext for Publisher {
    async fn from_context(context: &Context) -> Result<Self, ExtractError> {
        context.scope().get::<Self>().cloned().ok_or_else(|| ExtractError::new("this application has no publisher"))
    }
}

/// A message that is about to be published.
#[derive(Clone)]
#[must_use = "nothing is published before `send`"]
pub struct Publication {
    publisher: Publisher,
    exchange: String,
    routing_key: String,
    kind: Option<String>,
    version: u32,
    id: Option<String>,
    cause: Option<Envelope>,
    mandatory: bool,
    delivery_mode: u8,
    headers: Vec<(String, Value)>,
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication")
            .field("exchange", &self.exchange)
            .field("routing_key", &self.routing_key)
            .finish_non_exhaustive()
    }
}

impl Publication {
    /// Names the logical type; the routing key unless set.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Gives the schema version of the payload; 1 unless set.
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Gives the message this id in place of a random one, such as that of an earlier try.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Says which message caused this one: its correlation is carried on.
    pub fn cause(mut self, envelope: &Envelope) -> Self {
        self.cause = Some(envelope.clone());
        self
    }

    /// Adds a header of the application.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Is content when no queue takes the message.
    pub fn optional(mut self) -> Self {
        self.mandatory = false;
        self
    }

    /// Lets the message be lost in a restart of the broker.
    pub fn transient(mut self) -> Self {
        self.delivery_mode = 1;
        self
    }

    /// Publishes a value by the default codec, and waits for the broker's confirm.
    ///
    /// # Errors
    /// When nothing was sent, when no queue takes the message, or when the outcome is unknown.
    pub async fn send<T: Serialize + ?Sized>(self, message: &T) -> Result<Receipt, SendError> {
        self.send_as::<DefaultCodec, T>(message).await
    }

    /// Publishes a value by a codec, and waits for the broker's confirm.
    ///
    /// # Errors
    /// As [`Publication::send`].
    pub async fn send_as<C: Codec, T: Serialize + ?Sized>(self, message: &T) -> Result<Receipt, SendError> {
        let body = C::encode(message).map_err(SendError::Encode)?;
        self.send_raw(C::CONTENT_TYPE, body).await
    }

    /// Publishes a body as it is, and waits for the broker's confirm.
    ///
    /// # Errors
    /// As [`Publication::send`].
    pub async fn send_raw(self, content_type: &str, body: impl Into<Bytes>) -> Result<Receipt, SendError> {
        self.begin(content_type, body.into()).await?.receipt().await
    }

    /// Hands the message over; the answer comes later.
    async fn begin(self, content_type: &str, body: Bytes) -> Result<Sent, SendError> {
        let started = Instant::now();
        let (exchange, routing_key) = (self.exchange.clone(), self.routing_key.clone());
        let inner = Arc::clone(&self.publisher.0);
        let unnamed = self.unnamed();
        let kind = self.kind.as_deref().unwrap_or(unnamed);
        let route = inner.telemetry.route(&exchange, &routing_key, kind);
        let (id, message) = self.into_message(content_type, body, &inner.origin)?;
        let refused = |why: &str| {
            route.published(PublishOutcome::Refused, started.elapsed());
            Err(SendError::Refused { why: why.to_owned() })
        };
        if inner.paused.load(Ordering::SeqCst) {
            return refused("publishing is paused");
        }
        // Counted from before the permit, so that a close waits for those in the line too.
        let token = inner.outstanding.token();
        if inner.closed.load(Ordering::SeqCst) {
            return refused("the application is closed");
        }
        // Before the write, and back on every path: with the task, however it ends.
        let permit = Arc::clone(&inner.permits).acquire_owned().await;
        let link = inner.link.clone();
        // In a task of its own, since an answer that nobody awaits any more still has to give its permit back, and to be
        // counted.
        let answer = inner.runtime.spawn(async move {
            let (_permit, _token) = (permit, token);
            let answer = link.publish(message, Lane::User).await;
            route.published(outcome(&answer), started.elapsed());
            answer
        });
        Ok(Sent { id, exchange, routing_key, started, answer })
    }

    /// The type of a message that was given none.
    fn unnamed(&self) -> &str {
        if self.routing_key.is_empty() { &self.exchange } else { &self.routing_key }
    }

    fn into_message(self, content_type: &str, body: Bytes, origin: &str) -> Result<(String, Outgoing), SendError> {
        if let Some((name, _)) = self.headers.iter().find(|(name, _)| headers::is_reserved(name)) {
            return Err(SendError::ReservedHeader { name: name.clone() });
        }
        let unnamed = self.unnamed().to_owned();
        let kind = self.kind.unwrap_or(unnamed);
        if kind.is_empty() {
            return Err(EnvelopeError::Kind.into());
        }
        let mut envelope = match &self.cause {
            Some(cause) => cause.causing(kind),
            None => Envelope::new(kind),
        }
        .with_version(self.version)?
        .with_origin(origin);
        if let Some(id) = self.id {
            envelope = envelope.with_id(id);
        }
        let mut properties = Properties {
            content_type: Some(content_type.to_owned()),
            delivery_mode: Some(self.delivery_mode),
            headers: self.headers.into_iter().collect(),
            ..Properties::default()
        };
        envelope.write(&mut properties);
        let id = envelope.id().unwrap_or_default().to_owned();
        let message = Outgoing {
            exchange: self.exchange,
            routing_key: self.routing_key,
            mandatory: self.mandatory,
            properties,
            body,
        };
        Ok((id, message))
    }
}

/// A message that was handed over and waits for its answer.
struct Sent {
    id: String,
    exchange: String,
    routing_key: String,
    started: Instant,
    answer: tokio::task::JoinHandle<Result<Routing, PublishError>>,
}

impl Sent {
    async fn receipt(self) -> Result<Receipt, SendError> {
        let Self { id, exchange, routing_key, started, answer } = self;
        match answer.await {
            Ok(Ok(Routing::Routed)) => Ok(Receipt { id, latency: started.elapsed() }),
            Ok(Ok(Routing::Returned { .. })) => Err(SendError::Unroutable { exchange, routing_key }),
            Ok(Err(PublishError::Refused { why })) => Err(SendError::Refused { why }),
            Ok(Err(PublishError::Unknown { why })) => Err(SendError::Unknown { id, why }),
            Ok(Err(error)) => Err(SendError::Failed(error)),
            Err(_) => Err(SendError::Unknown { id, why: "the runtime is shutting down".to_owned() }),
        }
    }
}

fn outcome(answer: &Result<Routing, PublishError>) -> PublishOutcome {
    match answer {
        Ok(Routing::Routed) => PublishOutcome::Confirmed,
        Ok(Routing::Returned { .. }) => PublishOutcome::Unroutable,
        Err(
            PublishError::Refused { .. }
            | PublishError::TooLarge { .. }
            | PublishError::HeadersTooLarge { .. }
            | PublishError::Invalid { .. },
        ) => PublishOutcome::Refused,
        Err(PublishError::Nacked | PublishError::Unknown { .. } | PublishError::NoExchange { .. }) => {
            PublishOutcome::Failed
        }
    }
}
