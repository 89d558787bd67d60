//! One delivery, as a consumer function sees it.

use std::{any::Any, collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::scope::Scope;
use crate::envelope::{Envelope, Properties, Table, Value, headers};

/// One delivery and what surrounds it; cheap to clone.
#[derive(Clone)]
pub struct Context {
    delivered: Arc<Delivered>,
    scope: Arc<Scope>,
    cancelled: CancellationToken,
    /// What the engine has for this one delivery.
    #[cfg_attr(not(any(feature = "postgres", feature = "mysql", feature = "sqlite")), expect(dead_code))]
    own: Option<Arc<dyn Any + Send + Sync>>,
}

/// A message as it came from its queue.
#[derive(Debug, Clone)]
pub struct Delivered {
    /// The queue that it came from.
    pub queue: Arc<str>,
    /// The name of the consumer.
    pub consumer: Arc<str>,
    /// The exchange that it was published to; empty for the default one.
    pub exchange: String,
    /// The routing key that it was published with.
    pub routing_key: String,
    /// Whether the broker has delivered it before.
    pub redelivered: bool,
    /// What the message is.
    pub envelope: Envelope,
    /// The properties as they came, reserved headers included.
    pub properties: Properties,
    /// The body.
    pub body: Bytes,
}

impl Context {
    /// A context for one call of a consumer function.
    #[must_use]
    pub fn new(delivered: Arc<Delivered>, scope: Arc<Scope>, cancelled: CancellationToken) -> Self {
        Self { delivered, scope, cancelled, own: None }
    }

    /// Adds something that extractors take, for this delivery alone.
    pub(crate) fn with_own(self, own: Arc<dyn Any + Send + Sync>) -> Self {
        Self { own: Some(own), ..self }
    }

    /// What [`Context::with_own`] has added, if it is of this type.
    #[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
    pub(crate) fn own<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.own.clone()?.downcast().ok()
    }

    /// What the message is: id, type, attempt, correlation and so on.
    #[must_use]
    pub fn envelope(&self) -> &Envelope {
        &self.delivered.envelope
    }

    /// The number of this delivery as the policy counts, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.delivered.envelope.attempt()
    }

    /// The queue that the message came from.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.delivered.queue
    }

    /// The name of the consumer.
    #[must_use]
    pub fn consumer(&self) -> &str {
        &self.delivered.consumer
    }

    /// The exchange that the message was published to; empty for the default one.
    #[must_use]
    pub fn exchange(&self) -> &str {
        &self.delivered.exchange
    }

    /// The routing key that the message was published with.
    #[must_use]
    pub fn routing_key(&self) -> &str {
        &self.delivered.routing_key
    }

    /// Whether the broker has delivered the message before.
    #[must_use]
    pub fn redelivered(&self) -> bool {
        self.delivered.redelivered
    }

    /// The body as it came.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.delivered.body
    }

    /// The content type that the message names.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.delivered.properties.content_type.as_deref()
    }

    /// The AMQP properties as they came; the header table in them is as on the wire, see [`Context::headers`].
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.delivered.properties
    }

    /// One header of the application; those of the library are in the [`Envelope`].
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&Value> {
        if headers::is_reserved(name) { None } else { self.delivered.properties.headers.get(name) }
    }

    /// The headers of the application, without those of the library.
    #[must_use]
    pub fn headers(&self) -> BTreeMap<&str, &Value> {
        let table: &Table = &self.delivered.properties.headers;
        table
            .iter()
            .filter(|(name, _)| !headers::is_reserved(name))
            .map(|(name, value)| (name.as_str(), value))
            .collect()
    }

    /// Ends when the handler is to stop: at a shutdown whose deadline has passed, or when its claim was lost.
    ///
    /// Whatever the handler returns after that is dropped, and the message delivered again.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// The token behind [`Context::cancelled`], to hand to other tasks.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// What the application gave to all of its consumers.
    #[must_use]
    pub fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("consumer", &self.delivered.consumer)
            .field("envelope", &self.delivered.envelope)
            .finish_non_exhaustive()
    }
}
