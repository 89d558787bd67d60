//! What a consumer needs on the broker, as values.

mod names;
mod plan;
mod refusal;

pub use names::{DEAD_LETTER_EXCHANGE, LONGEST_NAME, RETRY_EXCHANGE, dead_letter_queue, parking_queue, rung_queue};
pub use plan::plan;
pub use refusal::DeclareError;
pub(crate) use refusal::remedy;

use std::fmt;

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

impl fmt::Display for Declaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exchange { name, .. } => write!(f, "exchange `{name}`"),
            Self::Queue { name, .. } | Self::QueueExists { name } => write!(f, "queue `{name}`"),
            Self::Binding { queue, exchange, routing_key } => {
                write!(f, "the binding of queue `{queue}` to exchange `{exchange}` on `{routing_key}`")
            }
        }
    }
}
