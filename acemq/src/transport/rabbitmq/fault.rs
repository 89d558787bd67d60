//! What lapin's errors mean here.

use lapin::{ErrorKind, protocol::AMQPErrorKind};

/// Whose end an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The channel; the connection goes on.
    Channel,
    /// The connection with everything on it.
    Connection,
}

/// An error with its AMQP code, if the broker sent one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) scope: Scope,
    pub(super) code: Option<u16>,
    /// The broker's words, or lapin's.
    pub(super) text: String,
}

impl Fault {
    /// Something that ended a connection without a word from the broker.
    pub(super) fn connection(text: impl Into<String>) -> Self {
        Self { scope: Scope::Connection, code: None, text: text.into() }
    }

    /// Something that ended a channel without a word from the broker; whether the connection went too is another question.
    pub(super) fn channel(text: impl Into<String>) -> Self {
        Self { scope: Scope::Channel, code: None, text: text.into() }
    }
}

impl From<&lapin::Error> for Fault {
    fn from(error: &lapin::Error) -> Self {
        match error.kind() {
            ErrorKind::ProtocolError(amqp) => Self {
                scope: match amqp.kind() {
                    AMQPErrorKind::Soft(_) => Scope::Channel,
                    AMQPErrorKind::Hard(_) => Scope::Connection,
                },
                code: Some(amqp.get_id()),
                text: amqp.get_message().to_string(),
            },
            // A channel that is closing, or closed by us.
            ErrorKind::InvalidChannel(_) | ErrorKind::InvalidChannelState(..) => Self::channel(error.to_string()),
            _ => Self::connection(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use lapin::protocol::{AMQPError, AMQPHardError, AMQPSoftError};

    use super::*;

    #[test]
    fn a_soft_error_is_the_end_of_the_channel_only() {
        let soft = AMQPError::new(AMQPSoftError::NOTFOUND.into(), "NOT_FOUND - no queue".into());
        let fault = Fault::from(&lapin::Error::from(ErrorKind::ProtocolError(soft)));
        assert_eq!((fault.scope, fault.code), (Scope::Channel, Some(404)));
        assert_eq!(fault.text, "NOT_FOUND - no queue");
        let hard = AMQPError::new(AMQPHardError::CONNECTIONFORCED.into(), "bye".into());
        let fault = Fault::from(&lapin::Error::from(ErrorKind::ProtocolError(hard)));
        assert_eq!((fault.scope, fault.code), (Scope::Connection, Some(320)));
        let fault = Fault::from(&lapin::Error::from(ErrorKind::MissingHeartbeatError));
        assert_eq!((fault.scope, fault.code), (Scope::Connection, None));
    }
}
