//! Publishing: every message confirmed, and an unroutable one an error.

mod batch;
mod publication;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, sync::Semaphore};
use tokio_util::task::TaskTracker;

pub use self::{batch::BatchError, publication::Publication};
use crate::{
    engine::Link,
    envelope::{DecodeError, EnvelopeError},
    handler::{Context, ExtractError, FromContext},
    telemetry::PublisherTelemetry,
    transport::PublishError,
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
    /// One id for several messages.
    #[error("several messages cannot have the one id that was set: leave out `id`, or send them one by one")]
    SharedId,
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
        Publication::new(self.clone(), exchange.into(), routing_key.into())
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
