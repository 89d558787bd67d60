//! RabbitMQ, by lapin.
//!
//! One [`Connection`] is one lapin connection without lapin's own recovery: when it is lost
//! it stays lost, and whoever needs one opens another. All of it, heartbeats included, runs on a small runtime of its own,
//! so that nothing that blocks the application's threads can cost a connection. What acemq adds to lapin, because a
//! message could be lost or a connection be wedged without it:
//!
//! - every answer of the broker is awaited with a deadline, and a connection that does not end is cut off;
//! - a publish channel belongs to one task, and returned messages are matched by what is in them, not by their place;
//! - acknowledgements of a channel go through one task that knows which tags are outstanding;
//! - what would make the broker close a channel or the connection is refused before it is written;
//! - what lapin cannot parse is mended before it sees it.
//!
//! lapin logs on its own: a returned message with its body at `WARN`, and, at `TRACE`, every frame, those with credentials
//! included. A filter such as `lapin=error` keeps both out of a log.

mod broker;
mod config;
mod connection;
mod consume;
mod convert;
mod declare;
mod drain;
mod exchanges;
mod fault;
mod filter;
mod flight;
mod lane;
mod open;
mod publish;
mod queue;
mod runtime;
mod shared;
mod size;
mod tags;
mod url;
mod window;
mod wire;

use std::{
    fmt,
    sync::{Arc, atomic::AtomicUsize},
};

use futures_util::{FutureExt, future::BoxFuture};

pub use self::config::Config;
use self::{connection::RabbitConnection, runtime::Background, shared::Ground, url::Target};
use crate::transport::{ConnectError, Connection, Role, Transport};

/// A RabbitMQ broker, or a cluster of them.
pub struct RabbitMq {
    targets: Vec<Target>,
    ground: Arc<Ground>,
}

impl RabbitMq {
    /// A broker by its URL, everything else by default: `amqp://user:password@host:port/vhost`. Parts that are left out are
    /// `guest`, `guest`, 5672 (5671 for `amqps`) and `/`; special characters are percent-encoded. Several URLs are
    /// separated by commas and tried in order.
    ///
    /// # Errors
    ///
    /// When a URL cannot be used. The text says what is wrong with it, without repeating it.
    pub fn new(url: impl Into<String>) -> Result<Self, ConnectError> {
        Self::with(Config::new(url))
    }

    /// A broker with its settings.
    ///
    /// # Errors
    ///
    /// When a URL cannot be used, or the system gives no thread.
    pub fn with(config: Config) -> Result<Self, ConnectError> {
        let (targets, settings) = config.into_parts()?;
        let background = Background::start().map_err(|error| ConnectError::Other {
            address: addresses(&targets),
            why: format!("no thread for it: {error}"),
        })?;
        let learned_max_size = AtomicUsize::new(0);
        Ok(Self { targets, ground: Arc::new(Ground { background, settings, learned_max_size }) })
    }
}

fn addresses(targets: &[Target]) -> String {
    let addresses: Vec<_> = targets.iter().map(Target::address).collect();
    addresses.join(", ")
}

impl Transport for RabbitMq {
    fn name(&self) -> &'static str {
        "rabbitmq"
    }

    fn address(&self) -> String {
        addresses(&self.targets)
    }

    fn connect(&self, role: Role) -> BoxFuture<'_, Result<Arc<dyn Connection>, ConnectError>> {
        let purpose = match role {
            Role::Consume => "consume",
            Role::Publish => "publish",
        };
        let name = format!("{} ({purpose})", self.ground.settings.connection_name);
        let connecting = connect(Arc::clone(&self.ground), self.targets.clone(), name);
        async move {
            let handle = self.ground.background.handle();
            let connected = match handle {
                Some(handle) => handle.spawn(connecting).await.ok(),
                None => None,
            };
            match connected {
                Some(Ok(connection)) => Ok(Arc::new(connection) as Arc<dyn Connection>),
                Some(Err(error)) => Err(error),
                None => Err(ConnectError::Other {
                    address: self.address(),
                    why: "the transport ended meanwhile".to_owned(),
                }),
            }
        }
        .boxed()
    }
}

/// Tries the addresses in order. Of several errors the telling one is one that waiting cannot mend.
async fn connect(ground: Arc<Ground>, targets: Vec<Target>, name: String) -> Result<RabbitConnection, ConnectError> {
    let mut worst: Option<ConnectError> = None;
    for target in targets {
        match open::open(&target, &ground.settings, &name).await {
            Ok(opened) => return Ok(RabbitConnection::new(ground, target, opened)),
            Err(error) => {
                if worst.as_ref().is_none_or(ConnectError::is_transient) {
                    worst = Some(error);
                }
            }
        }
    }
    Err(worst.unwrap_or_else(|| ConnectError::Url { why: "there is none".to_owned() }))
}

impl fmt::Debug for RabbitMq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMq")
            .field("targets", &self.targets)
            .field("settings", &self.ground.settings)
            .finish_non_exhaustive()
    }
}
