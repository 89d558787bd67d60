//! From a publisher, or from death, into the queues.

use std::sync::Arc;

use super::{
    arguments::Strategy,
    broker::{ConnectionId, State},
    message::Message,
    queue::Dead,
    route::Name,
};
use crate::{
    envelope::Value,
    transport::{Outgoing, PublishError, Role, Routing},
};

/// What a publisher is told.
pub(super) type Answer = Result<Routing, PublishError>;

/// The longest lifetime that RabbitMQ takes, in milliseconds.
const LONGEST_LIFETIME: u64 = 315_360_000_000;

impl State {
    /// Whether a connection may publish now.
    pub(super) fn may_publish(&self, connection: ConnectionId) -> Result<(), PublishError> {
        let refused = |why: String| Err(PublishError::Refused { why });
        match self.connections.get(&connection) {
            None => refused("the connection is closed".to_owned()),
            Some(link) if link.role == Role::Consume => {
                refused("this connection consumes; publish on another one".to_owned())
            }
            Some(_) => match &self.faults.blocked {
                Some(reason) => refused(format!("the broker takes no publishes: {reason}")),
                None => Ok(()),
            },
        }
    }

    /// Whether RabbitMQ would take a message at all, wherever it goes.
    pub(super) fn check(&self, outgoing: &Outgoing) -> Result<(), PublishError> {
        let size = outgoing.body.len();
        if let Some(limit) = self.max_message_size
            && size > limit
        {
            return Err(PublishError::TooLarge { size, limit });
        }
        check_properties(outgoing)?;
        if !self.has_exchange(&outgoing.exchange) {
            let exchange = outgoing.exchange.clone();
            return Err(PublishError::NoExchange { exchange });
        }
        Ok(())
    }

    /// Routes a message that was checked, and puts it into the queues.
    pub(super) fn accept(&mut self, outgoing: Outgoing) -> Answer {
        let mandatory = outgoing.mandatory;
        let message = Message::from(outgoing);
        let queues = self.queues_for(&message);
        if queues.is_empty() {
            let text = "NO_ROUTE".to_owned();
            return Ok(if mandatory { Routing::Returned { text } } else { Routing::Routed });
        }
        let message = Arc::new(message);
        let mut taken = true;
        for queue in queues {
            taken &= self.enqueue(&queue, Arc::clone(&message));
        }
        self.bury_the_dead();
        if taken { Ok(Routing::Routed) } else { Err(PublishError::Nacked) }
    }

    fn has_exchange(&self, name: &str) -> bool {
        name.is_empty() || self.exchanges.contains_key(name)
    }

    /// The queues that a message goes to, each once.
    fn queues_for(&self, message: &Message) -> Vec<Name> {
        let mut found = Vec::new();
        if let Some(exchange) = self.exchanges.get(&message.exchange) {
            message.routing_keys().for_each(|key| exchange.route(key, &mut found));
        } else if message.exchange.is_empty() {
            for key in message.routing_keys() {
                if let Some((name, _)) = self.queues.get_key_value(key)
                    && !found.contains(name)
                {
                    found.push(Arc::clone(name));
                }
            }
        }
        found
    }

    /// Puts a message into a queue, unless that refuses it.
    fn enqueue(&mut self, name: &Name, message: Arc<Message>) -> bool {
        let Some(queue) = self.queues.get_mut(name) else {
            return false;
        };
        if queue.refuses() {
            return false;
        }
        queue.push(message, self.now);
        // A consumer with room gets the message before it can expire: RabbitMQ delivers even with a lifetime of zero.
        self.dispatch(name);
        self.refresh(name);
        true
    }

    /// Passes on what died, and what dies of that.
    pub(super) fn bury_the_dead(&mut self) {
        while let Some(dead) = self.dead.pop_front() {
            self.pass_on(dead);
        }
    }

    fn pass_on(&mut self, mut dead: Dead) {
        let source = self.queues.get(&dead.queue);
        let Some(target) = source.and_then(|queue| queue.arguments.dead_letter.clone()) else {
            return;
        };
        let message = dead.message.buried(
            &dead.queue,
            dead.reason,
            &target.exchange,
            target.routing_key.as_deref(),
            self.unix_time(),
        );
        let mut queues = self.queues_for(&message);
        queues.retain(|queue| !message.circles_to(queue));
        let message = Arc::new(message);
        let mut taken = !queues.is_empty();
        for queue in queues {
            if dead.taken_by.contains(&queue) {
                continue;
            }
            if self.enqueue(&queue, Arc::clone(&message)) {
                dead.taken_by.push(queue);
            } else {
                taken = false;
            }
        }
        if !taken && target.strategy == Strategy::AtLeastOnce {
            let name = Arc::clone(&dead.queue);
            if let Some(source) = self.queues.get_mut(&name) {
                source.keep(dead, self.now);
            }
            self.schedule(&name);
        }
    }
}

/// Checks what RabbitMQ checks before it routes.
fn check_properties(outgoing: &Outgoing) -> Result<(), PublishError> {
    let refused = |why: String| {
        let why = format!("PRECONDITION_FAILED - {why}");
        Err(PublishError::Refused { why })
    };
    if let Some(expiration) = &outgoing.properties.expiration {
        let digits = !expiration.is_empty() && expiration.bytes().all(|byte| byte.is_ascii_digit());
        let lifetime = expiration.parse::<u64>().ok();
        if !digits || lifetime.is_none_or(|lifetime| lifetime > LONGEST_LIFETIME) {
            return refused(format!("invalid expiration '{expiration}'"));
        }
    }
    for header in ["CC", "BCC"] {
        if let Some(value) = outgoing.properties.headers.get(header)
            && !matches!(value, Value::Array(_))
        {
            return refused(format!("header '{header}' is no array"));
        }
    }
    Ok(())
}
