//! One message on its way to the broker, from its settings to its receipt.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use serde::Serialize;
use tokio::time::Instant;
use tracing::Instrument;

use super::{Publisher, Receipt, SendError};
use crate::{
    envelope::{Codec, DefaultCodec, Envelope, EnvelopeError, Properties, Value, headers},
    telemetry::{PublishOutcome, span},
    transport::{Lane, Outgoing, PublishError, Routing},
};

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
    pub(super) fn new(publisher: Publisher, exchange: String, routing_key: String) -> Self {
        Self {
            publisher,
            exchange,
            routing_key,
            kind: None,
            version: 1,
            id: None,
            cause: None,
            mandatory: true,
            delivery_mode: 2,
            headers: Vec::new(),
        }
    }

    /// Whether it can be that of several messages.
    pub(super) fn has_id(&self) -> bool {
        self.id.is_some()
    }

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
    pub(super) async fn begin(self, content_type: &str, body: Bytes) -> Result<Sent, SendError> {
        let started = Instant::now();
        let (exchange, routing_key) = (self.exchange.clone(), self.routing_key.clone());
        let inner = Arc::clone(&self.publisher.0);
        let unnamed = self.unnamed();
        let kind = self.kind.as_deref().unwrap_or(unnamed);
        let route = inner.telemetry.route(&exchange, &routing_key, kind);
        let (envelope, mut message) = self.into_message(content_type, body, &inner.origin)?;
        let span = span::publishing(&envelope, &mut message);
        let refused = |why: &str| {
            route.published(PublishOutcome::Refused, started.elapsed());
            span::published(&span, PublishOutcome::Refused.as_str(), Some(&why));
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
        let answer = async move {
            let (_permit, _token) = (permit, token);
            let answer = link.publish(message, Lane::User).await;
            let outcome = outcome(&answer);
            route.published(outcome, started.elapsed());
            span::published(&tracing::Span::current(), outcome.as_str(), error(&answer));
            answer
        };
        let answer = inner.runtime.spawn(answer.instrument(span));
        let id = envelope.id().unwrap_or_default().to_owned();
        Ok(Sent { id, exchange, routing_key, started, answer })
    }

    /// The type of a message that was given none.
    fn unnamed(&self) -> &str {
        if self.routing_key.is_empty() { &self.exchange } else { &self.routing_key }
    }

    fn into_message(self, content_type: &str, body: Bytes, origin: &str) -> Result<(Envelope, Outgoing), SendError> {
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
        let message = Outgoing {
            exchange: self.exchange,
            routing_key: self.routing_key,
            mandatory: self.mandatory,
            properties,
            body,
        };
        Ok((envelope, message))
    }
}

/// A message that was handed over and waits for its answer.
pub(super) struct Sent {
    id: String,
    exchange: String,
    routing_key: String,
    started: Instant,
    answer: tokio::task::JoinHandle<Result<Routing, PublishError>>,
}

impl Sent {
    pub(super) async fn receipt(self) -> Result<Receipt, SendError> {
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

fn error(answer: &Result<Routing, PublishError>) -> Option<&dyn fmt::Display> {
    match answer {
        Ok(Routing::Routed) => None,
        Ok(Routing::Returned { text }) => Some(text),
        Err(error) => Some(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_is_counted_as_what_it_was() {
        let why = String::new;
        for (answer, counted) in [
            (Ok(Routing::Routed), PublishOutcome::Confirmed),
            (Ok(Routing::Returned { text: why() }), PublishOutcome::Unroutable),
            (Err(PublishError::Refused { why: why() }), PublishOutcome::Refused),
            (Err(PublishError::TooLarge { size: 2, limit: 1 }), PublishOutcome::Refused),
            (Err(PublishError::HeadersTooLarge { size: 2, limit: 1 }), PublishOutcome::Refused),
            (Err(PublishError::Invalid { why: why() }), PublishOutcome::Refused),
            (Err(PublishError::Nacked), PublishOutcome::Failed),
            (Err(PublishError::Unknown { why: why() }), PublishOutcome::Failed),
            (Err(PublishError::NoExchange { exchange: why() }), PublishOutcome::Failed),
        ] {
            assert_eq!(outcome(&answer), counted, "{answer:?}");
        }
    }
}
