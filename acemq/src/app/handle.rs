//! What can be done with a running application from anywhere in it, its handlers included.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::running::{Inner, wind_down};
use crate::{
    Drained, Publisher, WaitAbandoned,
    engine::{self, Consumer, Life, Snapshot, Totals},
    handler::{Context, ExtractError, FromContext, Requirements},
    health::{ConnectionHealth, ConsumerHealth, Health, Own},
};

/// A handle on a running application; cheap to clone, and an argument that consumer functions may take.
///
/// It keeps nothing alive: when the application has closed, a pause does nothing and the counts stand still. Nothing of it
/// waits for the handler that calls it.
#[derive(Debug, Clone)]
pub struct Handle(pub(super) Arc<Inner>);

/// There is no consumer of this name in the application.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no consumer `{name}` here; there are: {known}")]
pub struct UnknownConsumer {
    /// The name.
    pub name: String,
    /// The names that there are.
    pub known: String,
}

impl Handle {
    /// Publishes over the connections of this application.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        self.0.publisher.clone()
    }

    /// Lets no further delivery into a handler. Those that run go on; those that were received wait, counted as held.
    pub fn pause_consuming(&self) {
        self.0.consumers.iter().for_each(|consumer| consumer.gate.shut());
    }

    /// Lets deliveries into handlers again.
    pub fn resume_consuming(&self) {
        self.0.consumers.iter().for_each(|consumer| consumer.gate.open());
    }

    /// Lets no further delivery into the handlers of one consumer.
    ///
    /// # Errors
    /// When there is no such consumer.
    pub fn pause_consumer(&self, name: &str) -> Result<(), UnknownConsumer> {
        self.consumer(name).map(|consumer| consumer.gate.shut())
    }

    /// Lets deliveries into the handlers of one consumer again.
    ///
    /// # Errors
    /// When there is no such consumer.
    pub fn resume_consumer(&self, name: &str) -> Result<(), UnknownConsumer> {
        self.consumer(name).map(|consumer| consumer.gate.open())
    }

    /// Refuses the application's publishes with a distinct error; acemq's own moves go on.
    pub fn pause_publishing(&self) {
        self.0.publisher.pause();
    }

    /// Takes the application's publishes again.
    pub fn resume_publishing(&self) {
        self.0.publisher.resume();
    }

    /// The number of handlers that run.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.0.snapshot().present.running
    }

    /// The number of deliveries that were received and that no handler has seen.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.snapshot().present.held
    }

    /// What became of all deliveries so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.0.snapshot().totals
    }

    /// The account so far.
    pub fn account(&self) -> Drained {
        let snapshot = self.0.snapshot();
        Drained::so_far(snapshot.present.busy() == 0, snapshot)
    }

    /// The account of one consumer so far.
    ///
    /// # Errors
    /// When there is no such consumer.
    pub fn account_of(&self, name: &str) -> Result<Drained, UnknownConsumer> {
        let snapshot = self.consumer(name)?.account.snapshot();
        Ok(Drained::so_far(snapshot.present.busy() == 0, snapshot))
    }

    /// How the application is, within three seconds whatever is broken, and without asking the broker anything.
    pub async fn health(&self) -> Health {
        let inner = &self.0;
        let contributors = join_all(inner.contributors.iter().map(async |contributor| {
            // One after the other only to begin: all run at once.
            (contributor.name, contributor.ask().await)
        }))
        .await;
        let contributors: BTreeMap<_, _> = contributors.into_iter().collect();
        // After the contributors, so that it is as fresh as the answer.
        Health::new(
            Own {
                transport: inner.consume.transport().name(),
                consuming: ConnectionHealth::of(
                    &inner.consume,
                    inner.consumers.iter().any(|consumer| !consumer.gate.is_open()),
                ),
                publishing: ConnectionHealth::of(&inner.publish, inner.publisher.is_paused()),
                consumers: inner.consumers.iter().map(|consumer| ConsumerHealth::of(consumer)).collect(),
                closing: inner.phase.closing.is_cancelled().then(|| self.account()),
            },
            contributors,
        )
    }

    /// Waits until every delivery that was received is settled, as far as no new ones come.
    pub async fn settled(&self) {
        for consumer in &self.0.consumers {
            consumer.account.until(|present| present.total() == 0).await;
        }
    }

    /// Pauses consuming and waits until no handler runs any more, at most so long. Consuming stays paused; what waits, at the
    /// gate or for its next try, goes on waiting and is in the account.
    ///
    /// Called from a handler, it does not wait for that one.
    pub async fn drain(&self, timeout: Duration) -> Drained {
        self.pause_consuming();
        let finished = tokio::time::timeout(timeout, self.quiet()).await.is_ok();
        Drained::so_far(finished, self.0.snapshot())
    }

    /// As [`Handle::drain`], until the token is cancelled.
    ///
    /// # Errors
    /// When the token is cancelled first. The handlers go on, and consuming stays paused.
    pub async fn drain_until(&self, timeout: Duration, token: &CancellationToken) -> Result<Drained, WaitAbandoned> {
        tokio::select! {
            biased;
            drained = self.drain(timeout) => Ok(drained),
            () = token.cancelled() => Err(WaitAbandoned(self.account())),
        }
    }

    /// Waits until nothing but the caller's own handler is busy, and every publish has its answer.
    async fn quiet(&self) {
        for consumer in &self.0.consumers {
            let own = usize::from(engine::inside(consumer));
            consumer.account.until(move |present| present.busy() <= own).await;
        }
        self.0.publisher.drain().await;
    }

    /// Stops one consumer as a close stops all: no new deliveries, what no handler has seen goes back, running handlers have
    /// the time of a drain and the grace. It does not start again.
    ///
    /// Called from a handler, it returns at once and the consumer stops meanwhile.
    ///
    /// # Errors
    /// When there is no such consumer.
    pub async fn stop(&self, name: &str) -> Result<Drained, UnknownConsumer> {
        let consumer = Arc::clone(self.consumer(name)?);
        tracing::info!(consumer = name, "stopping the consumer");
        consumer.phase.closing.cancel();
        let inner = Arc::clone(&self.0);
        let watched = Arc::clone(&consumer);
        // In a task of its own, since the deadline holds whether or not the caller waits.
        let stopping = self.0.runtime.spawn(async move {
            let mut life = watched.life();
            let ended = async move { drop(life.wait_for(|life| *life == Life::Closed).await) };
            wind_down(&watched.phase, ended, inner.drain_timeout, inner.grace).await;
        });
        if engine::inside_any() {
            let snapshot = consumer.account.snapshot();
            return Ok(Drained::so_far(false, snapshot));
        }
        // Only the end of the runtime keeps it from its end.
        let _ = stopping.await;
        Ok(Drained::closed(consumer.account.snapshot()))
    }

    /// Begins to close the application and returns at once. [`App::run`](crate::App::run) returns when it is done, and
    /// [`Handle::closed`] waits for it.
    pub fn begin_close(&self) {
        self.0.phase.closing.cancel();
    }

    /// Waits until a close begins.
    pub async fn closing(&self) {
        self.0.phase.closing.cancelled().await;
    }

    /// Ends the wait for running handlers of a close that has begun: the first time they are told to stop, the second time
    /// the grace ends too.
    pub fn hurry(&self) {
        if self.0.phase.cancel.is_cancelled() {
            self.0.phase.abandon.cancel();
        }
        self.0.phase.cancel.cancel();
    }

    /// Waits for the close, whoever began it.
    ///
    /// From a handler it would wait for that handler, until it is told to stop: there, only begin it.
    pub async fn closed(&self) -> Drained {
        let mut drained = self.0.drained.subscribe();
        let drained = drained.wait_for(Option::is_some).await.ok().and_then(|drained| *drained);
        // The sender is in reach of this handle, so there is always an answer.
        drained.unwrap_or_else(|| Drained::closed(self.0.snapshot()))
    }

    /// The names of the consumers.
    pub fn consumers(&self) -> impl Iterator<Item = &str> {
        self.0.consumers.iter().map(|consumer| &*consumer.name)
    }

    /// The address at which health and metrics are served, if they are.
    #[cfg(feature = "actuator")]
    #[must_use]
    pub fn actuator_address(&self) -> Option<std::net::SocketAddr> {
        self.0.actuator
    }

    /// What there is to tell about the application besides its health.
    #[cfg(feature = "actuator")]
    pub(crate) fn facts(&self) -> Facts {
        let transport = self.0.consume.transport();
        Facts {
            transport: transport.name(),
            address: transport.address(),
            origin: self.0.publisher.origin().to_owned(),
            started: self.0.started,
            consumers: self.0.consumers.iter().map(|consumer| consumer.registration).collect(),
        }
    }

    fn consumer(&self, name: &str) -> Result<&Arc<Consumer>, UnknownConsumer> {
        self.0.consumers.iter().find(|consumer| &*consumer.name == name).ok_or_else(|| UnknownConsumer {
            name: name.to_owned(),
            known: self.consumers().collect::<Vec<_>>().join(", "),
        })
    }
}

/// What there is to tell about an application besides its health.
#[cfg(feature = "actuator")]
pub(crate) struct Facts {
    pub(crate) transport: &'static str,
    pub(crate) address: String,
    pub(crate) origin: String,
    pub(crate) started: std::time::SystemTime,
    pub(crate) consumers: Vec<crate::registry::Registration>,
}

/// Where handlers find the handle: weak, since the application holds what is given to its handlers.
#[derive(Debug, Clone, Default)]
pub(super) struct HandleSlot(Arc<OnceLock<Weak<Inner>>>);

impl HandleSlot {
    pub(super) fn fill(&self, handle: &Handle) {
        // Filled once, when the application is made.
        let _ = self.0.set(Arc::downgrade(&handle.0));
    }
}

impl FromContext for Handle {
    async fn from_context(context: &Context) -> Result<Self, ExtractError> {
        let inner = context.scope().get::<HandleSlot>().and_then(|slot| slot.0.get()?.upgrade());
        inner.map(Self).ok_or_else(|| ExtractError::new("there is no application around this handler"))
    }

    fn requires(_: &mut Requirements) {}
}

impl Inner {
    pub(super) fn snapshot(&self) -> Snapshot {
        self.consumers.iter().fold(Snapshot::default(), |sum, consumer| sum + consumer.account.snapshot())
    }
}
