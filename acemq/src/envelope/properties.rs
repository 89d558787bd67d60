//! What travels beside a body: the AMQP properties.

use super::value::Table;

/// The properties of an AMQP 0-9-1 message; an absent one is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Properties {
    /// MIME type of the body.
    pub content_type: Option<String>,
    /// MIME encoding of the body.
    pub content_encoding: Option<String>,
    /// The header table.
    pub headers: Table,
    /// 1 is transient, 2 persistent.
    pub delivery_mode: Option<u8>,
    /// Priority, for queues that have priorities.
    pub priority: Option<u8>,
    /// Free for the application.
    pub correlation_id: Option<String>,
    /// Where to answer.
    pub reply_to: Option<String>,
    /// Milliseconds until the broker drops the message, in digits.
    pub expiration: Option<String>,
    /// The id of the message.
    pub message_id: Option<String>,
    /// Seconds since 1970.
    pub timestamp: Option<u64>,
    /// Free for the application.
    pub kind: Option<String>,
    /// The user that published; RabbitMQ refuses a message whose user is another one.
    pub user_id: Option<String>,
    /// Free for the application.
    pub app_id: Option<String>,
    /// Deprecated by AMQP, kept as it came.
    pub cluster_id: Option<String>,
}
