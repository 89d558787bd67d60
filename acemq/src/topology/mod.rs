//! What a consumer needs on the broker, as values.

use crate::envelope::Table;

/// One thing to declare or to check.
#[derive(Debug, Clone, PartialEq)]
pub enum Declaration {
    /// A durable exchange.
    Exchange {
        /// Its name.
        name: String,
        /// Its type.
        kind: ExchangeKind,
    },
    /// A durable queue.
    Queue {
        /// Its name.
        name: String,
        /// Its arguments.
        arguments: Table,
    },
    /// A binding from an exchange to a queue.
    Binding {
        /// The queue.
        queue: String,
        /// The exchange.
        exchange: String,
        /// The routing key.
        routing_key: String,
    },
    /// Asks whether a queue is there, and changes nothing.
    QueueExists {
        /// Its name.
        name: String,
    },
}

/// How an exchange routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExchangeKind {
    /// By equal routing key.
    Direct,
    /// To every bound queue.
    Fanout,
    /// By pattern.
    Topic,
}
