//! A running application, and its end.

use std::{future::Future, ops::Deref, sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinHandle, time::Instant};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use super::{handle::Handle, hook::Hooks};
use crate::{
    Drained, Publisher,
    engine::{Consumer, Link, Phase},
    health::Contributor,
};

/// How long what is left may take to come to rest once nobody waits for handlers any more.
const REST: Duration = Duration::from_secs(5);

/// How long things may take to come to rest when handlers were abandoned or the deadline is over.
const AFTER_ABANDON: Duration = Duration::from_secs(2);

/// The least time that outstanding publishes have for their answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// A running application; it does what its [`Handle`] does, and owns everything.
///
/// [`Running::close`] waits for its handlers. Dropping it does not: the intake stops at once, what was received goes back,
/// and handlers are abandoned.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    closer: JoinHandle<()>,
    _dropped: [DropGuard; 3],
}

/// What a running application is made of.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) consumers: Vec<Arc<Consumer>>,
    pub(super) consume: Link,
    pub(super) publish: Link,
    pub(super) publisher: Publisher,
    pub(super) phase: Phase,
    /// The consumers.
    pub(super) tasks: TaskTracker,
    /// What goes on until the connections are closed, such as the answers about health.
    pub(super) services: Services,
    pub(super) contributors: Vec<Contributor>,
    pub(super) hooks: Hooks,
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) drain_timeout: Duration,
    pub(super) grace: Duration,
    #[cfg(feature = "actuator")]
    pub(super) started: std::time::SystemTime,
    #[cfg(feature = "actuator")]
    pub(super) actuator: Option<std::net::SocketAddr>,
    pub(super) drained: watch::Sender<Option<Drained>>,
}

/// Tasks that serve an application until its end.
#[derive(Debug, Default)]
pub(super) struct Services {
    pub(super) tasks: TaskTracker,
    pub(super) end: CancellationToken,
}

impl Running {
    pub(super) fn new(inner: Inner) -> Self {
        let inner = Arc::new(inner);
        let guard = |token: &CancellationToken| token.clone().drop_guard();
        let phase = &inner.phase;
        let dropped = [guard(&phase.closing), guard(&phase.cancel), guard(&phase.abandon)];
        let closing = Arc::clone(&inner);
        // In a task of its own, so that a close goes on whoever began it and whatever becomes of them.
        let closer = inner.runtime.spawn(async move {
            closing.phase.closing.cancelled().await;
            let drained = closing.close().await;
            closing.drained.send_replace(Some(drained));
        });
        Self { handle: Handle(inner), closer, _dropped: dropped }
    }

    /// A handle, for those who do not own the application.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.handle.0
    }

    /// Stops the intake, gives back what no handler has seen, waits for the running handlers until the drain timeout, tells
    /// them to stop, waits for the grace, and closes the connections.
    ///
    /// Nothing of the application lives after it but handlers that do not end; they are in the account. Dropping the future
    /// cuts the waits short, as dropping the application does.
    pub async fn close(mut self) -> Drained {
        self.handle.begin_close();
        let drained = self.handle.closed().await;
        // The last of its tasks.
        let _ = (&mut self.closer).await;
        drained
    }
}

impl Deref for Running {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Inner {
    async fn close(&self) -> Drained {
        let end = Instant::now() + self.drain_timeout + self.grace;
        wind_down(&self.phase, self.tasks.wait(), self.drain_timeout, self.grace).await;
        self.phase.abandon.cancel();
        // Within the same deadline: an answer that is on its way is worth the time that is left.
        let answers = end.max(Instant::now() + LAST_ANSWERS);
        if tokio::time::timeout_at(answers, self.publisher.close()).await.is_err() {
            tracing::warn!("publishes are without an answer: their outcome stays unknown");
        }
        // A broker that has fallen silent answers no farewell; the deadline holds for it too.
        let now = Instant::now();
        let farewell = end.max(now + AFTER_ABANDON).min(now + REST);
        let connections = async { tokio::join!(self.consume.close(), self.publish.close()) };
        if tokio::time::timeout_at(farewell, connections).await.is_err() {
            tracing::warn!("the connections did not close in time");
        }
        let drained = Drained::closed(self.snapshot());
        self.hooks.drained(&drained).await;
        self.services.end.cancel();
        self.services.tasks.close();
        let _ = tokio::time::timeout(REST, self.services.tasks.wait()).await;
        drained
    }
}

/// Waits for handlers that have been cut off from new deliveries: until the deadline by themselves, and for the grace after
/// they were told to stop. Afterwards they are no longer waited for.
pub(super) async fn wind_down(phase: &Phase, ended: impl Future<Output = ()>, deadline: Duration, grace: Duration) {
    let mut ended = std::pin::pin!(ended);
    tokio::select! {
        biased;
        () = &mut ended => return,
        // Somebody is in a hurry.
        () = phase.cancel.cancelled() => {}
        () = tokio::time::sleep(deadline) => {}
    }
    tracing::warn!("handlers are told to stop");
    phase.cancel.cancel();
    tokio::select! {
        biased;
        () = &mut ended => return,
        () = phase.abandon.cancelled() => {}
        () = tokio::time::sleep(grace) => {}
    }
    tracing::error!("handlers did not stop, and are abandoned: their messages are delivered again");
    phase.abandon.cancel();
    // After this even a handler that blocks its thread is left behind.
    let _ = tokio::time::timeout(AFTER_ABANDON, ended).await;
}
