//! One connection that is kept open: whenever it is lost, another is opened.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::backoff::Backoff;
use crate::transport::{
    ConnectError, Connection, ConnectionState, Lane, Outgoing, PublishError, Role, Routing, Transport,
};

/// A connection that lived this long was a success, and the next loss is met with a try at once.
const SETTLED_AFTER: Duration = Duration::from_secs(10);

/// A connection for one role, over all of its incarnations; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    inner: Arc<Inner>,
    /// The task holds the inner part too, and must end with the last handle.
    _end: Arc<DropGuard>,
}

#[derive(Debug)]
struct Inner {
    transport: Arc<dyn Transport>,
    role: Role,
    state: watch::Sender<State>,
    generation: AtomicU64,
    last_error: Mutex<Option<String>>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Debug, Clone)]
enum State {
    Up(Incarnation),
    Down { since: tokio::time::Instant },
    Closed,
}

/// One life of the connection, counted from 1.
#[derive(Debug, Clone)]
pub(crate) struct Incarnation {
    pub(crate) connection: Arc<dyn Connection>,
    pub(crate) generation: u64,
}

/// How a link is, for health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinkStatus {
    pub(crate) open: bool,
    pub(crate) blocked: Option<String>,
    /// How long there has been no connection.
    pub(crate) down_for: Option<Duration>,
    /// Which connection it is, or was, counted from 1.
    pub(crate) generation: u64,
    pub(crate) last_error: Option<String>,
}

impl Link {
    /// Opens the first connection, and keeps one open from then on.
    ///
    /// # Errors
    /// When the first connection cannot be opened: a mistake in the URL is to be seen at once.
    pub(crate) async fn open(transport: Arc<dyn Transport>, role: Role) -> Result<Self, ConnectError> {
        let connection = transport.connect(role).await?;
        let first = Incarnation { connection, generation: 1 };
        let closing = CancellationToken::new();
        let inner = Arc::new(Inner {
            transport,
            role,
            state: watch::Sender::new(State::Up(first.clone())),
            generation: AtomicU64::new(1),
            last_error: Mutex::new(None),
            closing: closing.clone(),
            tasks: TaskTracker::new(),
        });
        let keeper = Arc::clone(&inner);
        inner.tasks.spawn(async move { keeper.keep(first).await });
        inner.tasks.close();
        Ok(Self { inner, _end: Arc::new(closing.drop_guard()) })
    }

    /// The connection, if there is one now.
    pub(crate) fn current(&self) -> Option<Incarnation> {
        match &*self.inner.state.borrow() {
            State::Up(incarnation) => Some(incarnation.clone()),
            State::Down { .. } | State::Closed => None,
        }
    }

    /// Waits for a connection; `None` once the link is closed.
    pub(crate) async fn up(&self) -> Option<Incarnation> {
        let mut states = self.inner.state.subscribe();
        let state = states.wait_for(|state| !matches!(state, State::Down { .. })).await.ok()?;
        match &*state {
            State::Up(incarnation) => Some(incarnation.clone()),
            State::Down { .. } | State::Closed => None,
        }
    }

    /// Publishes over the present connection.
    pub(crate) async fn publish(&self, message: Outgoing, lane: Lane) -> Result<Routing, PublishError> {
        match self.current() {
            Some(incarnation) => incarnation.connection.publish(message, lane).await,
            None => Err(PublishError::Refused { why: "there is no connection to the broker now".to_owned() }),
        }
    }

    /// The transport, for what is shown of it.
    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        &self.inner.transport
    }

    pub(crate) fn status(&self) -> LinkStatus {
        let last_error = self.inner.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (open, blocked, down_for) = match &*self.inner.state.borrow() {
            State::Up(incarnation) => match &*incarnation.connection.state().borrow() {
                ConnectionState::Open => (true, None, None),
                ConnectionState::Blocked { reason } => (true, Some(reason.clone()), None),
                ConnectionState::Closed { .. } => (false, None, Some(Duration::ZERO)),
            },
            State::Down { since } => (false, None, Some(since.elapsed())),
            State::Closed => (false, None, None),
        };
        let generation = self.inner.generation.load(Ordering::Relaxed);
        LinkStatus { open, blocked, down_for, generation, last_error }
    }

    /// Closes the connection and opens no other.
    pub(crate) async fn close(&self) {
        self.inner.closing.cancel();
        self.inner.tasks.wait().await;
    }
}

impl Inner {
    async fn keep(&self, mut incarnation: Incarnation) {
        let mut backoff = Backoff::new();
        loop {
            let opened = tokio::time::Instant::now();
            let reason = tokio::select! {
                biased;
                () = self.closing.cancelled() => {
                    self.state.send_replace(State::Closed);
                    incarnation.connection.close().await;
                    return;
                }
                reason = lost(&*incarnation.connection) => reason,
            };
            if opened.elapsed() >= SETTLED_AFTER {
                backoff.reset();
            }
            tracing::warn!(role = ?self.role, generation = incarnation.generation, reason, "the connection was lost");
            self.failed(reason);
            self.state.send_replace(State::Down { since: tokio::time::Instant::now() });
            // What is left of it must not outlive it.
            incarnation.connection.close().await;
            let generation = incarnation.generation + 1;
            match self.reopen(&mut backoff, generation).await {
                Some(next) => incarnation = next,
                None => return,
            }
        }
    }

    async fn reopen(&self, backoff: &mut Backoff, generation: u64) -> Option<Incarnation> {
        let mut tries = 0_u32;
        loop {
            let attempt = async {
                tokio::time::sleep(backoff.next()).await;
                self.transport.connect(self.role).await
            };
            let result = tokio::select! {
                biased;
                () = self.closing.cancelled() => {
                    self.state.send_replace(State::Closed);
                    return None;
                }
                result = attempt => result,
            };
            match result {
                Ok(connection) => {
                    tracing::info!(role = ?self.role, generation, "connected again");
                    self.generation.store(generation, Ordering::Relaxed);
                    let incarnation = Incarnation { connection, generation };
                    self.state.send_replace(State::Up(incarnation.clone()));
                    return Some(incarnation);
                }
                Err(error) => {
                    tries = tries.saturating_add(1);
                    // The first failure and then every tenth: a broker that is away for hours must not fill the log.
                    if tries % 10 == 1 {
                        tracing::warn!(role = ?self.role, tries, %error, "cannot connect; trying again");
                    }
                    self.failed(error.to_string());
                }
            }
        }
    }

    fn failed(&self, error: String) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// Ends when a connection does, with the reason.
pub(super) async fn lost(connection: &dyn Connection) -> String {
    let mut states = connection.state();
    let closed = states.wait_for(|state| matches!(state, ConnectionState::Closed { .. })).await;
    match closed.as_deref() {
        Ok(ConnectionState::Closed { reason }) => reason.clone(),
        _ => "the connection ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, future::BoxFuture};

    use super::*;
    use crate::{
        topology::{Declaration, DeclareError},
        transport::{Subscribe, Subscription},
    };

    /// A connection of a transport that forgets to say that it is closed.
    #[derive(Debug)]
    struct Mute(watch::Receiver<ConnectionState>);

    impl Connection for Mute {
        fn declare<'a>(&'a self, _: &'a Declaration) -> BoxFuture<'a, Result<(), DeclareError>> {
            std::future::pending().boxed()
        }

        fn subscribe<'a>(&'a self, _: &'a Subscribe) -> BoxFuture<'a, Result<Subscription, DeclareError>> {
            std::future::pending().boxed()
        }

        fn publish(&self, _: Outgoing, _: Lane) -> BoxFuture<'static, Result<Routing, PublishError>> {
            std::future::pending().boxed()
        }

        fn state(&self) -> watch::Receiver<ConnectionState> {
            self.0.clone()
        }

        fn close(&self) -> BoxFuture<'_, ()> {
            std::future::pending().boxed()
        }
    }

    #[tokio::test]
    async fn a_connection_is_lost_when_it_is_closed_or_nobody_is_left_to_say_so() {
        let state = watch::Sender::new(ConnectionState::Open);
        let connection = Mute(state.subscribe());
        assert_eq!(lost(&connection).now_or_never(), None);
        state.send_replace(ConnectionState::Blocked { reason: "low on memory".to_owned() });
        assert_eq!(lost(&connection).now_or_never(), None);
        drop(state);
        assert_eq!(lost(&connection).await, "the connection ended");
        let state = watch::Sender::new(ConnectionState::Closed { reason: "reset".to_owned() });
        assert_eq!(lost(&Mute(state.subscribe())).await, "reset");
    }
}
