//! A window on the broker, for tests.

use super::{
    Memory,
    broker::State,
    queue::{Queue, Stored},
};
use crate::{
    topology::Declaration,
    transport::{DeclareError, Incoming, Outgoing, PublishError, Routing},
};

/// The broker at one moment. A queue that does not exist has nothing in it.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    state: &'a State,
}

impl View<'_> {
    /// Whether a queue exists.
    #[must_use]
    pub fn exists(&self, queue: &str) -> bool {
        self.state.queues.contains_key(queue)
    }

    /// How many messages of a queue wait for a consumer.
    #[must_use]
    pub fn ready(&self, queue: &str) -> usize {
        self.state.queues.get(queue).map_or(0, Queue::ready)
    }

    /// How many messages of a queue consumers have and have not settled.
    #[must_use]
    pub fn unacked(&self, queue: &str) -> usize {
        self.state.queues.get(queue).map_or(0, |queue| queue.unacked)
    }

    /// How many dead letters a queue keeps because nobody took them and they must not be lost.
    #[must_use]
    pub fn kept(&self, queue: &str) -> usize {
        self.state.queues.get(queue).map_or(0, Queue::kept)
    }

    /// How many messages a queue is responsible for: ready, unacked and kept.
    #[must_use]
    pub fn depth(&self, queue: &str) -> usize {
        self.ready(queue) + self.unacked(queue) + self.kept(queue)
    }

    /// How many consumers a queue has.
    #[must_use]
    pub fn consumers(&self, queue: &str) -> usize {
        let queue = self.state.queues.get(queue);
        queue.map_or(0, |queue| queue.consumers.len())
    }

    /// The tags of a queue's consumers.
    #[must_use]
    pub fn tags(&self, queue: &str) -> Vec<String> {
        self.state.tags(queue).map(str::to_owned).collect()
    }

    /// The ready messages of a queue, the next one first, with a tag of zero. They stay where they are.
    #[must_use]
    pub fn messages(&self, queue: &str) -> Vec<Incoming> {
        self.state.queues.get(queue).map_or_else(Vec::new, |queue| {
            let copy = |stored: &Stored| {
                let returns = queue.returns(stored);
                stored.message.incoming(0, stored.redelivered, returns)
            };
            queue.messages().map(copy).collect()
        })
    }

    /// How many connections are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.state.connections.len()
    }

    /// Everything that was declared: exchanges, queues and bindings, each kind sorted by name.
    #[must_use]
    pub fn declarations(&self) -> Vec<Declaration> {
        self.state.declarations()
    }
}

/// Inspection and direct access, for tests.
impl Memory {
    /// Looks at the broker as it is now.
    ///
    /// The broker stands still meanwhile; calling it from within would wait for ever.
    pub fn view<R>(&self, look: impl FnOnce(View<'_>) -> R) -> R {
        self.broker.look(|state| look(View { state }))
    }

    /// Waits until the broker satisfies a condition, which is checked after every change.
    ///
    /// It waits for ever if that never happens; wrap it in [`tokio::time::timeout`] where it may not.
    pub async fn wait_until(&self, mut condition: impl FnMut(View<'_>) -> bool) {
        loop {
            let changed = self.broker.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Before the check, so that a change right after it is not missed.
            changed.as_mut().enable();
            if self.view(&mut condition) {
                return;
            }
            changed.await;
        }
    }

    /// How many messages a queue is responsible for: ready, unacked and kept.
    #[must_use]
    pub fn depth(&self, queue: &str) -> usize {
        self.view(|view| view.depth(queue))
    }

    /// How many messages of a queue wait for a consumer.
    #[must_use]
    pub fn ready(&self, queue: &str) -> usize {
        self.view(|view| view.ready(queue))
    }

    /// How many messages of a queue consumers have and have not settled.
    #[must_use]
    pub fn unacked(&self, queue: &str) -> usize {
        self.view(|view| view.unacked(queue))
    }

    /// How many consumers a queue has.
    #[must_use]
    pub fn consumers(&self, queue: &str) -> usize {
        self.view(|view| view.consumers(queue))
    }

    /// The ready messages of a queue, the next one first, with a tag of zero. They stay where they are.
    #[must_use]
    pub fn messages(&self, queue: &str) -> Vec<Incoming> {
        self.view(|view| view.messages(queue))
    }

    /// Takes the ready messages of a queue out of it, the next one first.
    #[must_use]
    pub fn take(&self, queue: &str) -> Vec<Incoming> {
        self.broker.with(|state| {
            let taken = View { state }.messages(queue);
            state.purge(queue);
            taken
        })
    }

    /// Everything that was declared: exchanges, queues and bindings, each kind sorted by name.
    #[must_use]
    pub fn declarations(&self) -> Vec<Declaration> {
        self.view(|view| view.declarations())
    }

    /// Declares something without a connection.
    ///
    /// # Errors
    ///
    /// As over a connection.
    pub fn declare(&self, wanted: &Declaration) -> Result<(), DeclareError> {
        self.broker.with(|state| state.declare(wanted))
    }

    /// Publishes without a connection: no fault touches it.
    ///
    /// # Errors
    ///
    /// As over a connection.
    pub fn publish(&self, message: Outgoing) -> Result<Routing, PublishError> {
        self.broker.with(|state| {
            state.check(&message)?;
            state.accept(message)
        })
    }
}
