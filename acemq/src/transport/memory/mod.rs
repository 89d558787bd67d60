//! The embedded broker.
//!
//! It behaves as RabbitMQ 4.0 does where acemq can see it, neither kinder nor stricter: see [`Memory`] for what it has,
//! and for what it refuses.

mod arguments;
mod broker;
mod connection;
mod declare;
mod deliver;
mod fault;
mod inspect;
mod message;
mod publish;
mod queue;
mod route;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use futures_util::{FutureExt as _, future::BoxFuture};
pub use inspect::View;

use self::{broker::Broker, connection::MemoryConnection};
use super::{ConnectError, Connection, Role, Transport};

/// The brokers that have a name, for the life of the process.
static NAMED: LazyLock<Mutex<HashMap<String, Memory>>> = LazyLock::new(Mutex::default);

/// A handle on an embedded broker: the transport of `memory://name`, and for tests a window on the broker and a way to
/// make it fail.
///
/// # What it has
///
/// Direct, fanout and topic exchanges and the default one; classic and quorum queues; `CC` and `BCC`; mandatory publishes;
/// prefetch, requeueing, redelivery; `x-message-ttl`, per-message expiration, `x-max-length` with `x-overflow`,
/// `x-delivery-limit`, and dead-lettering, at most or at least once, with `x-death`.
///
/// Time is tokio's: where it is paused, a lifetime of hours passes in no time. A broker that several runtimes use keeps
/// time on the first of them that needs it, and when that has ended, on the next one that uses the broker.
///
/// Where versions of RabbitMQ differ it follows 4.0: every return to a quorum queue counts towards a delivery limit of 20,
/// the `x-death` of a client is not believed, and returned messages of a quorum queue come before all others.
///
/// # What it refuses
///
/// Streams, priorities, single active consumers, `x-expires`, and every other `x-` argument that RabbitMQ has or may have:
/// an argument that is ignored here and honoured there would be a lie.
///
/// # What it forgets
///
/// All of it with the process: nothing is written to a disk.
#[derive(Debug, Clone)]
pub struct Memory {
    broker: Arc<Broker>,
    name: Arc<str>,
}

impl Memory {
    /// The broker of a name, which is a new one the first time.
    ///
    /// As a real broker outlives its clients, so does this one: queues and messages stay until the process ends, or until
    /// [`Memory::forget`].
    #[must_use]
    pub fn named(name: &str) -> Self {
        let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Self { broker: Broker::new(), name: name.into() };
        named.entry(name.to_owned()).or_insert_with(new).clone()
    }

    /// Frees a name: the next one to ask for it gets a new broker. Who has the old one keeps it.
    pub fn forget(name: &str) {
        let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = named.remove(name);
        // Dropped with the broker's last handle, which must not happen under the lock.
        drop(named);
        drop(forgotten);
    }

    /// A broker of its own, which lives as long as a handle or a connection does.
    #[must_use]
    pub fn private() -> Self {
        Self { broker: Broker::new(), name: "private".into() }
    }
}

impl Transport for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn address(&self) -> String {
        format!("memory://{}", self.name)
    }

    fn connect(&self, role: Role) -> BoxFuture<'_, Result<Arc<dyn Connection>, ConnectError>> {
        async move {
            let broker = Arc::clone(&self.broker);
            let connection = MemoryConnection::open(broker, role, self.address())?;
            Ok(Arc::new(connection) as Arc<dyn Connection>)
        }
        .boxed()
    }
}
