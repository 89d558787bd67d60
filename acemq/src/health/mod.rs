//! How an application is, told without asking the broker anything.

mod contributor;

use std::{collections::BTreeMap, time::Duration};

pub(crate) use contributor::Contributor;
pub use contributor::{CHECK_TIMEOUT, Component, HealthContributor};

use crate::{
    drain::Drained,
    engine::{Consumer, Life, Link, Oldest, Present},
};

/// The name of the part that is acemq's own connections.
pub(crate) const CONNECTION: &str = "connection";

/// The name of the part that tells how far a shutdown is.
pub(crate) const SHUTDOWN: &str = "shutdown";

/// What the name of a consumer is preceded by.
pub(crate) const CONSUMER: &str = "consumer.";

/// Whether something works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It does.
    Up,
    /// Part of it does not, and acemq is at work on it.
    Degraded,
    /// It does not.
    Down,
}

impl Status {
    /// The word for the outside.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "UP",
            Self::Degraded => "DEGRADED",
            Self::Down => "DOWN",
        }
    }
}

/// How an application is; the worst of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The worst of all parts.
    pub status: Status,
    /// The name of the transport.
    pub transport: &'static str,
    /// The connection that brings deliveries.
    pub consuming: ConnectionHealth,
    /// The connection that takes publishes.
    pub publishing: ConnectionHealth,
    /// Each consumer.
    pub consumers: Vec<ConsumerHealth>,
    /// What the application added, by name.
    pub contributors: BTreeMap<&'static str, Component>,
    /// The account so far, while the application closes.
    pub closing: Option<Drained>,
}

/// How a connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionHealth {
    /// Down when it has been closed for longer than it takes to reconnect.
    pub status: Status,
    /// Whether there is a connection now.
    pub open: bool,
    /// The broker's reason, while it takes no publishes; that is back pressure, and the connection is up.
    pub blocked: Option<String>,
    /// Whether the application has paused it.
    pub paused: bool,
    /// Which connection it is, counted from 1: one less is how often it was lost.
    pub generation: u64,
    /// The last reason why a connection was lost or could not be opened.
    pub last_error: Option<String>,
}

/// How a consumer is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerHealth {
    /// Its name.
    pub name: String,
    /// Its queue.
    pub queue: String,
    /// Degraded without a live subscription.
    pub status: Status,
    /// Whether the broker sends it messages.
    pub subscribed: bool,
    /// Where its deliveries are.
    pub present: Present,
    /// How long ago the last delivery came.
    pub last_delivery: Option<Duration>,
    /// How long ago the last delivery was settled.
    pub last_settlement: Option<Duration>,
    /// The handler that has been running for the longest time.
    pub oldest: Option<Oldest>,
    /// How often it subscribed again.
    pub resubscribed: u64,
    /// Why it last lost its subscription, or did not get one.
    pub last_error: Option<String>,
}

/// A connection that is gone for longer than this is down; shorter, it is being opened again.
pub const RECONNECT_GRACE: Duration = Duration::from_secs(30);

/// What acemq itself knows.
pub(crate) struct Own {
    pub(crate) transport: &'static str,
    pub(crate) consuming: ConnectionHealth,
    pub(crate) publishing: ConnectionHealth,
    pub(crate) consumers: Vec<ConsumerHealth>,
    pub(crate) closing: Option<Drained>,
}

impl Health {
    pub(crate) fn new(own: Own, contributors: BTreeMap<&'static str, Component>) -> Self {
        let Own { transport, consuming, publishing, consumers, closing } = own;
        // At a shutdown the consumers end one after another, which is no fault.
        let consuming_status = consumers.iter().map(|consumer| consumer.status).filter(|_| closing.is_none());
        let parts = consuming_status.chain(contributors.values().map(|component| component.status));
        let status = parts.chain([consuming.status, publishing.status]).max().unwrap_or(Status::Up);
        Self { status, transport, consuming, publishing, consumers, contributors, closing }
    }

    /// The number of handlers that run.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.consumers.iter().map(|consumer| consumer.present.running).sum()
    }

    /// Every part by its name, with what there is to say about it: what the health endpoint shows.
    #[must_use]
    pub fn components(&self) -> BTreeMap<String, Component> {
        let mut components: BTreeMap<String, Component> =
            self.contributors.iter().map(|(name, component)| ((*name).to_owned(), component.clone())).collect();
        components.insert(CONNECTION.to_owned(), self.connection());
        for consumer in &self.consumers {
            components.insert(format!("{CONSUMER}{}", consumer.name), consumer.component());
        }
        if let Some(drained) = &self.closing {
            components.insert(SHUTDOWN.to_owned(), Component::up().with("account", drained.to_string()));
        }
        components
    }

    fn connection(&self) -> Component {
        let Self { consuming, publishing, .. } = self;
        let held: usize = self.consumers.iter().map(|consumer| consumer.present.held).sum();
        let mut component = Component::new(consuming.status.max(publishing.status))
            .with("open", (consuming.open && publishing.open).to_string())
            .with("blocked", publishing.blocked.is_some().to_string())
            .with("transport", self.transport)
            .with("inFlight", self.in_flight().to_string())
            .with("held", held.to_string())
            .with("consumingGeneration", consuming.generation.to_string())
            .with("publishingGeneration", publishing.generation.to_string());
        for (name, value) in [
            ("blockedReason", publishing.blocked.clone()),
            ("consuming", consuming.paused.then(|| "paused".to_owned())),
            ("publishing", publishing.paused.then(|| "paused".to_owned())),
            ("consumingLastError", consuming.last_error.clone()),
            ("publishingLastError", publishing.last_error.clone()),
        ] {
            component.details.extend(value.map(|value| (name.to_owned(), value)));
        }
        component
    }
}

impl ConnectionHealth {
    pub(crate) fn of(link: &Link, paused: bool) -> Self {
        let status = link.status();
        let health = match status.down_for {
            _ if status.open => Status::Up,
            Some(gone) if gone < RECONNECT_GRACE => Status::Degraded,
            _ => Status::Down,
        };
        Self {
            status: health,
            open: status.open,
            blocked: status.blocked,
            paused,
            generation: status.generation,
            last_error: status.last_error,
        }
    }
}

impl ConsumerHealth {
    pub(crate) fn of(consumer: &Consumer) -> Self {
        let last = consumer.last();
        let subscribed = *consumer.life().borrow() == Life::Subscribed;
        Self {
            name: consumer.name.to_string(),
            queue: consumer.queue.to_string(),
            status: if subscribed { Status::Up } else { Status::Degraded },
            subscribed,
            present: consumer.account.now(),
            last_delivery: consumer.account.last_arrival().map(|at| at.elapsed()),
            last_settlement: consumer.account.last_settlement().map(|at| at.elapsed()),
            oldest: consumer.account.oldest(),
            resubscribed: last.resubscribed,
            last_error: last.error,
        }
    }

    fn component(&self) -> Component {
        let mut component = Component::new(self.status)
            .with("queue", &*self.queue)
            .with("subscribed", self.subscribed.to_string())
            .with("inFlight", self.present.running.to_string())
            .with("held", self.present.held.to_string())
            .with("waiting", self.present.waiting.to_string())
            .with("resubscribed", self.resubscribed.to_string());
        let oldest = self.oldest.as_ref();
        for (name, value) in [
            ("lastDeliverySecondsAgo", self.last_delivery.map(seconds)),
            ("lastSettlementSecondsAgo", self.last_settlement.map(seconds)),
            ("oldestHandlerSeconds", oldest.map(|oldest| seconds(oldest.age))),
            ("oldestHandlerMessage", oldest.and_then(|oldest| oldest.id.clone())),
            ("lastError", self.last_error.clone()),
        ] {
            component.details.extend(value.map(|value| (name.to_owned(), value)));
        }
        component
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}
