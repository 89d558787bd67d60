//! The seam between acemq and a broker.
//!
//! A [`Transport`] opens [`Connection`]s. A connection lives once: when it is lost, everything that came from it is void,
//! and whoever needs one opens another. Reconnecting, resubscribing and counting belong to the engine, so that every
//! transport gets them and their tests run on the embedded broker in paused time.
//!
//! Every future of this module ends: an adapter puts a deadline on each answer that it awaits.

pub mod memory;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};
use tokio::sync::watch;

pub use crate::topology::DeclareError;
use crate::{envelope::Properties, topology::Declaration};

/// What a connection is for. While the broker blocks publishers it no longer reads a connection that has published, so a
/// connection that consumes must never publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Declarations, deliveries and their settlement.
    Consume,
    /// Publishes and their confirms.
    Publish,
}

/// Opens connections to one broker.
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// The name that health shows, such as `rabbitmq` or `memory`.
    fn name(&self) -> &'static str;

    /// Where the broker is, without credentials.
    fn address(&self) -> String;

    /// Opens one connection.
    fn connect(&self, role: Role) -> BoxFuture<'_, Result<Arc<dyn Connection>, ConnectError>>;
}

impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn address(&self) -> String {
        (**self).address()
    }

    fn connect(&self, role: Role) -> BoxFuture<'_, Result<Arc<dyn Connection>, ConnectError>> {
        (**self).connect(role)
    }
}

/// One connection, from its opening to its end.
pub trait Connection: fmt::Debug + Send + Sync + 'static {
    /// Declares or checks one thing, on a channel of its own that is closed again: a refusal harms nothing else.
    fn declare<'a>(&'a self, wanted: &'a Declaration) -> BoxFuture<'a, Result<(), DeclareError>>;

    /// Opens a channel and consumes from a queue on it.
    fn subscribe<'a>(&'a self, wanted: &'a Subscribe) -> BoxFuture<'a, Result<Subscription, DeclareError>>;

    /// Publishes, mandatory unless the message says otherwise, and waits for the confirm.
    ///
    /// The message is handed over before this returns: dropping the future abandons the answer, not the publish.
    fn publish(&self, message: Outgoing, lane: Lane) -> BoxFuture<'static, Result<Routing, PublishError>>;

    /// The state of the connection, and its changes. The last one is always [`ConnectionState::Closed`].
    fn state(&self) -> watch::Receiver<ConnectionState>;

    /// Closes the connection and waits for the end of everything in it: its tasks, its socket, its thread.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// How a connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    /// Usable.
    Open,
    /// Open, but the broker takes no publishes.
    Blocked {
        /// The broker's reason.
        reason: String,
    },
    /// Gone for good.
    Closed {
        /// Why, without credentials.
        reason: String,
    },
}

/// Which publishes share a channel, so that one party's mistake cannot spoil another's confirms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Moves of acemq itself: retries, dead letters, parked messages.
    Hop,
    /// Publishes of the application.
    User,
}

/// A wish to consume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe {
    /// The queue.
    pub queue: String,
    /// How many unsettled deliveries the broker may have out at once; never zero.
    pub prefetch: u16,
    /// The consumer tag, stable over reconnects.
    pub tag: String,
}

/// A running subscription: the deliveries, and the channel that settles them.
pub struct Subscription {
    /// The deliveries. An `Err` is the last item. An end without one is the end of [`Channel::cancel`], or, without that,
    /// the broker's own cancellation: the queue was deleted or the consumer timed out.
    pub deliveries: BoxStream<'static, Result<Incoming, ChannelLost>>,
    /// Settles what the stream yields.
    pub channel: Arc<dyn Channel>,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("channel", &self.channel).finish_non_exhaustive()
    }
}

/// The channel of one subscription.
pub trait Channel: fmt::Debug + Send + Sync + 'static {
    /// Settles one delivery of this channel, at most once for each tag, without waiting.
    ///
    /// [`Settled::Done`] means that it was handed to the channel, not that the broker has it.
    fn settle(&self, tag: u64, verdict: Verdict) -> Settled;

    /// Asks the broker to send nothing more. What it had sent still comes out of the stream, which then ends.
    fn cancel(&self) -> BoxFuture<'_, ()>;

    /// Writes what is settled, closes the channel and waits for the broker's answer. What was not settled goes back to the
    /// queue.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// How a delivery ends for the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Done: the broker forgets it.
    Ack,
    /// Back to the queue.
    Requeue,
}

/// Whether a settlement could be handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Settled {
    /// It was.
    Done,
    /// The channel is gone: the broker delivers the message again.
    Gone,
}

/// A message as it came from a queue.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// What the channel settles it by.
    pub tag: u64,
    /// The exchange that it was published to; empty for the default one.
    pub exchange: String,
    /// The routing key that it was published with.
    pub routing_key: String,
    /// Whether the broker has delivered it before.
    pub redelivered: bool,
    /// The properties.
    pub properties: Properties,
    /// The body.
    pub body: Bytes,
}

/// A message to publish.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The exchange; empty for the default one, which routes to the queue named by the routing key.
    pub exchange: String,
    /// The routing key.
    pub routing_key: String,
    /// Whether the broker must say so when it can route the message nowhere.
    pub mandatory: bool,
    /// The properties. The message id is always there: it pairs a return with its publish.
    pub properties: Properties,
    /// The body.
    pub body: Bytes,
}

/// What became of a confirmed publish.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Routing {
    /// At least one queue has it, or the publish was not mandatory.
    Routed,
    /// It was mandatory and no queue took it: it is nowhere.
    Returned {
        /// The broker's text, such as `NO_ROUTE`.
        text: String,
    },
}

/// A publish that was not confirmed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// Nothing was written: it is safe to publish again.
    #[error("the publish was refused before anything was sent: {why}")]
    Refused {
        /// The reason.
        why: String,
    },
    /// The broker answered that it did not take the message.
    #[error("the broker did not take the message: a queue is full, or failed")]
    Nacked,
    /// It was written, and no answer came: the message may or may not have arrived.
    #[error("the outcome of the publish is unknown: {why}")]
    Unknown {
        /// The reason.
        why: String,
    },
    /// The body is larger than the broker takes.
    #[error(
        "the message has {size} bytes and the broker takes {limit}; raise `max_message_size` here and on the broker, or send a reference"
    )]
    TooLarge {
        /// Bytes of the body.
        size: usize,
        /// Bytes that are allowed.
        limit: usize,
    },
    /// The properties and headers are larger than one frame, and AMQP cannot split them.
    #[error(
        "the headers and properties take {size} bytes and the broker takes {limit}; move large values into the body"
    )]
    HeadersTooLarge {
        /// Bytes of the frame that would carry them.
        size: usize,
        /// Bytes that are allowed.
        limit: usize,
    },
    /// The message itself cannot be published, now or later: a name is too long for AMQP, or the broker refuses a property
    /// or the user.
    #[error("the message cannot be published: {why}")]
    Invalid {
        /// What is wrong with it.
        why: String,
    },
    /// The exchange does not exist.
    #[error("exchange `{exchange}` does not exist; declare it, or correct the name")]
    NoExchange {
        /// Its name.
        exchange: String,
    },
}

/// Why a connection could not be opened. No text holds credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be used.
    #[error("the broker URL is wrong: {why}")]
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// Nobody answers at the address.
    #[error("no broker answers at {address}: {why}; check that it runs and that the address is right")]
    Unreachable {
        /// Host and port.
        address: String,
        /// The system's reason.
        why: String,
    },
    /// User or password are wrong.
    #[error("the broker at {address} refuses user `{user}`: check the name and the password")]
    Credentials {
        /// Host and port.
        address: String,
        /// The user.
        user: String,
    },
    /// The virtual host does not exist, or the user may not use it.
    #[error("virtual host `{vhost}` at {address} does not exist, or user `{user}` may not use it: {why}")]
    Vhost {
        /// Host and port.
        address: String,
        /// The virtual host.
        vhost: String,
        /// The user.
        user: String,
        /// The broker's words.
        why: String,
    },
    /// The peer did not finish the handshake in time.
    #[error("the broker at {address} did not finish the handshake within {after:?}")]
    TimedOut {
        /// Host and port.
        address: String,
        /// How long was waited.
        after: Duration,
    },
    /// Anything else.
    #[error("the connection to {address} failed: {why}")]
    Other {
        /// Host and port.
        address: String,
        /// The reason.
        why: String,
    },
}

impl ConnectError {
    /// Whether trying again later can help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Other { .. })
    }
}

/// Why a channel ended under its subscription.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the channel was lost: {why}")]
pub struct ChannelLost {
    /// The reason.
    pub why: String,
    /// Whether the connection went with it, or only the channel.
    pub connection: bool,
}
