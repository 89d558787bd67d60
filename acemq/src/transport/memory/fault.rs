//! What can go wrong on demand, for tests.

use super::{
    Memory,
    broker::{ConnectionId, State, Unconfirmed},
};
use crate::transport::{ConnectionState, Role};

/// Faults on demand, for tests.
impl Memory {
    /// Cuts every connection: deliveries end with an error, unconfirmed publishes are unknown, unsettled messages go back.
    pub fn cut(&self) {
        self.broker.with(|state| {
            let open: Vec<_> = state.connections.keys().copied().collect();
            for id in open {
                state.close_connection(id, "the connection was cut");
            }
        });
    }

    /// Refuses new connections, or takes them again; open ones stay.
    pub fn refuse_connections(&self, refuse: bool) {
        self.broker.with(|state| state.faults.refuse_connections = refuse);
    }

    /// Takes no more publishes, and tells the connections that publish; deliveries go on.
    pub fn block(&self, reason: &str) {
        self.broker.with(|state| {
            state.faults.blocked = Some(reason.to_owned());
            state.tell_publishers(&ConnectionState::Blocked { reason: reason.to_owned() });
        });
    }

    /// Takes publishes again.
    pub fn unblock(&self) {
        self.broker.with(|state| {
            state.faults.blocked = None;
            state.tell_publishers(&ConnectionState::Open);
        });
    }

    /// Deletes a queue with everything in it; its consumers' deliveries end.
    pub fn delete_queue(&self, name: &str) {
        self.broker.with(|state| state.delete_queue(name, true));
    }

    /// Deletes a queue with everything in it and tells its consumers nothing, as RabbitMQ does where it finds a queue down.
    pub fn lose_queue(&self, name: &str) {
        self.broker.with(|state| state.delete_queue(name, false));
    }

    /// Deletes an exchange with its bindings.
    pub fn delete_exchange(&self, name: &str) {
        self.broker.with(|state| state.exchanges.remove(name));
    }

    /// Cancels the consumers of a queue as a broker may: their deliveries end, what they hold can still be settled.
    pub fn cancel_consumers(&self, queue: &str) {
        self.broker.with(|state| {
            for id in state.channels_of(queue) {
                state.cancel(id);
            }
        });
    }

    /// Closes the channels that consume from a queue as RabbitMQ does when a delivery is held too long.
    pub fn close_channels(&self, queue: &str) {
        self.broker.with(|state| {
            for id in state.channels_of(queue) {
                let why = "PRECONDITION_FAILED - delivery acknowledgement timed out";
                state.close_channel(id, why, false);
            }
        });
    }

    /// Answers the next publishes with a nack, and forgets them.
    pub fn nack_next(&self, count: usize) {
        self.broker.with(|state| state.faults.nacks = count);
    }

    /// Takes the next publishes and never answers: they end as unknown when the connection is cut, or their time is over.
    pub fn lose_confirms(&self, count: usize) {
        self.broker.with(|state| state.faults.lost_confirms = count);
    }

    /// Takes publishes and holds the answers back, until it is told otherwise.
    pub fn stall_confirms(&self, stall: bool) {
        self.broker.with(|state| {
            state.faults.stalled = stall;
            if !stall {
                let waiting = std::mem::take(&mut state.unconfirmed);
                let (lost, due) = waiting.into_iter().partition(|waiting| waiting.lost);
                state.unconfirmed = lost;
                let due: Vec<Unconfirmed> = due;
                for waiting in due {
                    // Whoever published may have given up.
                    waiting.reply.send(waiting.answer).ok();
                }
            }
        });
    }

    /// Takes no body larger than this.
    pub fn limit_message_size(&self, bytes: usize) {
        self.broker.with(|state| state.max_message_size = Some(bytes));
    }
}

impl State {
    pub(super) fn close_connection(&mut self, id: ConnectionId, why: &str) {
        let Some(link) = self.connections.remove(&id) else {
            return;
        };
        for channel in link.channels {
            self.close_channel(channel, why, true);
        }
        self.give_up(|waiting| waiting.connection == id);
        link.state.send_replace(ConnectionState::Closed { reason: why.to_owned() });
    }

    /// Leaves publishes without an answer for ever.
    pub(super) fn give_up(&mut self, which: impl Fn(&Unconfirmed) -> bool) {
        self.unconfirmed.retain(|waiting| !which(waiting));
    }

    fn tell_publishers(&self, now: &ConnectionState) {
        for link in self.connections.values() {
            if link.role == Role::Publish {
                link.state.send_replace(now.clone());
            }
        }
    }

    fn channels_of(&self, queue: &str) -> Vec<super::queue::ChannelId> {
        let queue = self.queues.get(queue);
        queue.map_or_else(Vec::new, |queue| queue.consumers.iter().copied().collect())
    }
}
