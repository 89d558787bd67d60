//! A running application, and its end.

use std::{future::Future, sync::Arc, time::Duration};

use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    Drained, Publisher,
    engine::{Consumer, Link, Phase, Totals},
    health::{ConnectionHealth, ConsumerHealth, Health},
};

/// How long what is left may take to come to rest once nobody waits for handlers any more.
const REST: Duration = Duration::from_secs(5);

/// A running application. Dropping it stops the intake and abandons the handlers; [`Running::close`] waits for them.
#[derive(Debug)]
pub struct Running {
    consumers: Vec<Arc<Consumer>>,
    consume: Link,
    publish: Link,
    publisher: Publisher,
    phase: Phase,
    tasks: TaskTracker,
    drain_timeout: Duration,
    grace: Duration,
    _dropped: [DropGuard; 3],
}

impl Running {
    pub(super) fn new(
        consumers: Vec<Arc<Consumer>>,
        consume: Link,
        publish: Link,
        publisher: Publisher,
        phase: Phase,
        drain_timeout: Duration,
        grace: Duration,
    ) -> Self {
        let guard = |token: &CancellationToken| token.clone().drop_guard();
        Self {
            _dropped: [guard(&phase.closing), guard(&phase.cancel), guard(&phase.abandon)],
            consumers,
            consume,
            publish,
            publisher,
            phase,
            tasks: TaskTracker::new(),
            drain_timeout,
            grace,
        }
    }

    pub(super) fn consumers(&self) -> &[Arc<Consumer>] {
        &self.consumers
    }

    pub(super) fn consume_link(&self) -> &Link {
        &self.consume
    }

    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Publishes over the connections of this application.
    #[must_use]
    pub fn publisher(&self) -> Publisher {
        self.publisher.clone()
    }

    /// Lets no further delivery into a handler. Those that run go on; those that were received wait, counted as held.
    pub fn pause_consuming(&self) {
        self.consumers.iter().for_each(|consumer| consumer.gate.shut());
    }

    /// Lets deliveries into handlers again.
    pub fn resume_consuming(&self) {
        self.consumers.iter().for_each(|consumer| consumer.gate.open());
    }

    /// Refuses the application's publishes with a distinct error; acemq's own moves go on.
    pub fn pause_publishing(&self) {
        self.publisher.pause();
    }

    /// Takes the application's publishes again.
    pub fn resume_publishing(&self) {
        self.publisher.resume();
    }

    /// The number of handlers that run.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.consumers.iter().map(|consumer| consumer.account.now().running).sum()
    }

    /// The number of deliveries that were received and that no handler has seen.
    #[must_use]
    pub fn held(&self) -> usize {
        self.consumers.iter().map(|consumer| consumer.account.now().held).sum()
    }

    /// How the application is, told without asking the broker anything.
    #[must_use]
    pub fn health(&self) -> Health {
        let paused = self.consumers.iter().any(|consumer| !consumer.gate.is_open());
        Health::new(
            ConnectionHealth::of(&self.consume, paused),
            ConnectionHealth::of(&self.publish, self.publisher.is_paused()),
            self.consumers.iter().map(|consumer| ConsumerHealth::of(consumer)).collect(),
        )
    }

    /// What became of all deliveries so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.consumers.iter().fold(Totals::default(), |sum, consumer| sum + consumer.account.totals())
    }

    /// Waits until every delivery that was received is settled, as far as no new ones come.
    pub async fn settled(&self) {
        for consumer in &self.consumers {
            let mut changes = consumer.account.changes();
            while consumer.account.now().total() > 0 {
                if changes.changed().await.is_err() {
                    break;
                }
            }
        }
    }

    /// Stops the intake, gives back what no handler has seen, waits for the running handlers until the drain timeout, tells
    /// them to stop, waits for the grace, and closes the connections.
    pub async fn close(self) -> Drained {
        self.close_or(std::future::pending()).await
    }

    /// Like [`Running::close`], with the wait for running handlers cut short when `hurry` ends.
    pub(super) async fn close_or(self, hurry: impl Future<Output = ()>) -> Drained {
        let mut hurry = std::pin::pin!(hurry);
        let mut hurried = false;
        self.phase.closing.cancel();
        self.tasks.close();
        let mut finished = tokio::select! {
            biased;
            () = self.tasks.wait() => true,
            () = &mut hurry => {
                hurried = true;
                false
            }
            () = tokio::time::sleep(self.drain_timeout) => false,
        };
        if !finished {
            tracing::warn!(running = self.in_flight(), "handlers are told to stop");
            self.phase.cancel.cancel();
            finished = tokio::select! {
                biased;
                () = self.tasks.wait() => true,
                () = &mut hurry, if !hurried => false,
                () = tokio::time::sleep(self.grace) => false,
            };
        }
        let abandoned = if finished { 0 } else { self.in_flight() };
        self.phase.abandon.cancel();
        // After this even a handler that blocks its thread is left behind.
        let _ = tokio::time::timeout(REST, self.tasks.wait()).await;
        let _ = tokio::time::timeout(REST, self.publisher.drain()).await;
        tokio::join!(self.consume.close(), self.publish.close());
        Drained {
            finished: abandoned == 0,
            abandoned: u64::try_from(abandoned).unwrap_or(u64::MAX),
            totals: self.totals(),
        }
    }
}
