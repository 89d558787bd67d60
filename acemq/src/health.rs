//! How an application is, told without asking the broker anything.

use std::time::Duration;

use crate::engine::{Consumer, Life, Link, Present};

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

/// How an application is; the worst of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The worst of all parts.
    pub status: Status,
    /// The connection that brings deliveries.
    pub consuming: ConnectionHealth,
    /// The connection that takes publishes.
    pub publishing: ConnectionHealth,
    /// Each consumer.
    pub consumers: Vec<ConsumerHealth>,
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
    /// Where its deliveries are.
    pub present: Present,
    /// How long ago the last delivery came.
    pub last_delivery: Option<Duration>,
    /// How often it subscribed again.
    pub resubscribed: u64,
    /// Why it last lost its subscription, or did not get one.
    pub last_error: Option<String>,
}

/// A connection that is gone for longer than this is down; shorter, it is being opened again.
const RECONNECT_GRACE: Duration = Duration::from_secs(30);

impl Health {
    pub(crate) fn new(
        consuming: ConnectionHealth,
        publishing: ConnectionHealth,
        consumers: Vec<ConsumerHealth>,
    ) -> Self {
        let parts = consumers.iter().map(|consumer| consumer.status);
        let status = parts.chain([consuming.status, publishing.status]).max().unwrap_or(Status::Up);
        Self { status, consuming, publishing, consumers }
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
        Self { status: health, open: status.open, blocked: status.blocked, paused, last_error: status.last_error }
    }
}

impl ConsumerHealth {
    pub(crate) fn of(consumer: &Consumer) -> Self {
        let last = consumer.last();
        let status = match &*consumer.life().borrow() {
            Life::Subscribed => Status::Up,
            Life::Starting | Life::Degraded { .. } | Life::Closed => Status::Degraded,
        };
        Self {
            name: consumer.name.to_string(),
            queue: consumer.queue.to_string(),
            status,
            present: consumer.account.now(),
            last_delivery: consumer.account.last_arrival().map(|at| at.elapsed()),
            resubscribed: last.resubscribed,
            last_error: last.error,
        }
    }
}
