//! From the queues to the consumers, and back.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::mpsc;

use super::{
    broker::{ConnectionId, State},
    queue::{ChannelId, Stored},
    route::Name,
};
use crate::transport::{ChannelLost, DeclareError, Incoming, Role, Settled, Subscribe, Verdict};

/// What a consumer is sent.
pub(super) type Sent = Result<Incoming, ChannelLost>;

/// A channel with its one consumer.
#[derive(Debug)]
pub(super) struct Consumer {
    connection: ConnectionId,
    queue: Name,
    tag: String,
    prefetch: usize,
    last_tag: u64,
    /// Gone once the consumer is cancelled.
    deliveries: Option<mpsc::UnboundedSender<Sent>>,
    unacked: BTreeMap<u64, Stored>,
    /// Whether the queue was deleted: what is out then has nowhere to go back to.
    orphan: bool,
}

impl State {
    pub(super) fn subscribe(
        &mut self,
        connection: ConnectionId,
        wanted: &Subscribe,
    ) -> Result<(ChannelId, mpsc::UnboundedReceiver<Sent>), DeclareError> {
        let object = format!("queue `{}`", wanted.queue);
        let id = self.next_id();
        let Some(link) = self.connections.get_mut(&connection) else {
            let why = "the connection is closed".to_owned();
            return Err(DeclareError::Lost { object, why });
        };
        if link.role == Role::Publish {
            let text = "this connection publishes; consume on another one".to_owned();
            return Err(DeclareError::Refused { object, text });
        }
        if wanted.prefetch == 0 {
            let text = "a prefetch of zero is no limit at all".to_owned();
            return Err(DeclareError::Refused { object, text });
        }
        let Some(queue) = self.queues.get_mut(wanted.queue.as_str()) else {
            return Err(DeclareError::Missing { object });
        };
        let (deliveries, receiver) = mpsc::unbounded_channel();
        let name = Arc::clone(queue.name());
        queue.consumers.insert(id);
        queue.available.push_back(id);
        link.channels.insert(id);
        let consumer = Consumer {
            connection,
            queue: Arc::clone(&name),
            tag: wanted.tag.clone(),
            prefetch: wanted.prefetch.into(),
            last_tag: 0,
            deliveries: Some(deliveries),
            unacked: BTreeMap::new(),
            orphan: false,
        };
        self.consumers.insert(id, consumer);
        self.refresh(&name);
        self.bury_the_dead();
        Ok((id, receiver))
    }

    /// Hands ready messages to consumers with room, in turn.
    pub(super) fn dispatch(&mut self, name: &Name) {
        let Some(queue) = self.queues.get_mut(name) else {
            return;
        };
        while queue.ready() > 0
            && let Some(id) = queue.available.pop_front()
        {
            let Some(consumer) = self.consumers.get_mut(&id) else {
                continue;
            };
            let Some(deliveries) = &consumer.deliveries else {
                continue;
            };
            let Some(stored) = queue.pop() else { return };
            consumer.last_tag += 1;
            let tag = consumer.last_tag;
            let returns = queue.returns(&stored);
            let delivery = stored.message.incoming(tag, stored.redelivered, returns);
            // Who no longer listens is about to cancel: the message comes back with the channel.
            deliveries.send(Ok(delivery)).ok();
            consumer.unacked.insert(tag, stored);
            queue.unacked += 1;
            if consumer.unacked.len() < consumer.prefetch {
                queue.available.push_back(id);
            }
        }
    }

    pub(super) fn settle(&mut self, id: ChannelId, tag: u64, verdict: Verdict) -> Settled {
        let Some(consumer) = self.consumers.get_mut(&id) else {
            return Settled::Gone;
        };
        let was_full = consumer.unacked.len() >= consumer.prefetch;
        let Some(stored) = consumer.unacked.remove(&tag) else {
            let why = format!("PRECONDITION_FAILED - unknown delivery tag {tag}");
            self.close_channel(id, &why, false);
            return Settled::Done;
        };
        if consumer.orphan {
            return Settled::Done;
        }
        let name = Arc::clone(&consumer.queue);
        let has_room = was_full && consumer.deliveries.is_some();
        if let Some(queue) = self.queues.get_mut(&name) {
            queue.unacked = queue.unacked.saturating_sub(1);
            if has_room {
                queue.available.push_back(id);
            }
            if verdict == Verdict::Requeue {
                queue.put_back(stored, &mut self.dead);
            }
        }
        self.refresh(&name);
        self.bury_the_dead();
        Settled::Done
    }

    /// Sends a consumer nothing more; what it has been sent can still be settled.
    pub(super) fn cancel(&mut self, id: ChannelId) {
        let Some(consumer) = self.consumers.get_mut(&id) else {
            return;
        };
        consumer.deliveries = None;
        if let Some(queue) = self.queues.get_mut(&consumer.queue) {
            queue.consumers.remove(&id);
            queue.available.retain(|other| *other != id);
        }
    }

    /// Ends a channel, and puts back what was not settled.
    pub(super) fn close_channel(&mut self, id: ChannelId, why: &str, connection: bool) {
        let Some(mut consumer) = self.consumers.remove(&id) else {
            return;
        };
        if let Some(link) = self.connections.get_mut(&consumer.connection) {
            link.channels.remove(&id);
        }
        if let Some(deliveries) = consumer.deliveries.take() {
            let lost = ChannelLost { why: why.to_owned(), connection };
            // Nobody may be listening.
            deliveries.send(Err(lost)).ok();
        }
        if consumer.orphan {
            return;
        }
        let name = consumer.queue;
        if let Some(queue) = self.queues.get_mut(&name) {
            queue.consumers.remove(&id);
            queue.available.retain(|other| *other != id);
            queue.unacked = queue.unacked.saturating_sub(consumer.unacked.len());
            for stored in consumer.unacked.into_values() {
                queue.put_back(stored, &mut self.dead);
            }
        }
        self.refresh(&name);
        self.bury_the_dead();
    }

    /// Deletes a queue with everything in it; its consumers are cancelled.
    pub(super) fn delete_queue(&mut self, name: &str, told: bool) {
        let Some(queue) = self.queues.remove(name) else {
            return;
        };
        for exchange in self.exchanges.values_mut() {
            exchange.unbind_all(name);
        }
        for consumer in self.consumers.values_mut() {
            if &*consumer.queue == name {
                if told {
                    consumer.deliveries = None;
                }
                consumer.orphan = true;
            }
        }
        self.forget_deadline(&queue);
    }

    /// The tags of a queue's consumers.
    pub(super) fn tags<'a>(&'a self, queue: &'a str) -> impl Iterator<Item = &'a str> {
        let consumers = self.queues.get(queue).map(|queue| &queue.consumers);
        consumers.into_iter().flatten().filter_map(|id| self.consumers.get(id)).map(|consumer| consumer.tag.as_str())
    }
}
