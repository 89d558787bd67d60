//! Publishing: from the caller into a lane, and what is refused before anything is written.

use std::sync::{Arc, atomic::Ordering};

use lapin::{BasicProperties, types::ShortString};
use tokio::sync::{mpsc, oneshot};

use super::{
    broker,
    convert::{self, TooLong},
    lane,
    shared::Shared,
    size,
};
use crate::transport::{ConnectionState, Outgoing, PublishError, Routing};

pub(super) type Answer = Result<Routing, PublishError>;

/// A publish on its way, and who waits for it.
pub(super) struct Job {
    pub(super) message: Outgoing,
    /// What lapin wants of the message, made by the caller's thread. Spent with the first try; a second one makes it anew.
    pub(super) parts: Option<Parts>,
    pub(super) answer: oneshot::Sender<Answer>,
}

impl Job {
    pub(super) fn answer(self, answer: Answer) {
        // The caller may have given up.
        let _ = self.answer.send(answer);
    }

    pub(super) fn refuse(self, why: impl Into<String>) {
        self.answer(Err(PublishError::Refused { why: why.into() }));
    }
}

/// The envelope of a publish in lapin's types.
pub(super) struct Parts {
    pub(super) exchange: ShortString,
    pub(super) routing_key: ShortString,
    pub(super) properties: BasicProperties,
}

impl Parts {
    pub(super) fn of(message: &Outgoing) -> Result<Self, TooLong> {
        Ok(Self {
            exchange: convert::short(&message.exchange, "exchange name")?,
            routing_key: convert::short(&message.routing_key, "routing key")?,
            properties: convert::properties_to(&message.properties)?,
        })
    }
}

/// The way into one lane. The queue has no bound of its own: the caller holds the permits.
#[derive(Debug)]
pub(super) struct Entrance(mpsc::UnboundedSender<Job>);

impl Entrance {
    /// Starts a lane on a connection.
    pub(super) fn open(shared: &Arc<Shared>) -> Self {
        let (jobs, queue) = mpsc::unbounded_channel();
        shared.spawn_lane(lane::run(Arc::clone(shared), queue));
        Self(jobs)
    }

    /// Hands a message over. Whether it is dropped or not, the answer comes exactly once.
    pub(super) fn publish(
        &self,
        shared: &Shared,
        message: Outgoing,
    ) -> Result<oneshot::Receiver<Answer>, PublishError> {
        let parts = check(shared, &message)?;
        let (answer, receiver) = oneshot::channel();
        let job = Job { message, parts: Some(parts), answer };
        match self.0.send(job) {
            Ok(()) => Ok(receiver),
            Err(_) => Err(PublishError::Refused { why: shared.end_or("the connection is closing") }),
        }
    }
}

/// Refuses what must not or cannot be written.
fn check(shared: &Shared, message: &Outgoing) -> Result<Parts, PublishError> {
    open_for_publishes(shared)?;
    let size = message.body.len();
    if let Some(limit) = max_message_size(shared)
        && size > limit
    {
        return Err(PublishError::TooLarge { size, limit });
    }
    let (size, limit) = (size::header_frame(&message.properties), shared.frame_max);
    if size > limit {
        return Err(PublishError::HeadersTooLarge { size, limit });
    }
    Parts::of(message).map_err(|error| PublishError::Invalid { why: error.to_string() })
}

/// An error while the connection takes no publishes.
pub(super) fn open_for_publishes(shared: &Shared) -> Result<(), PublishError> {
    let why = match shared.state() {
        ConnectionState::Open => return Ok(()),
        ConnectionState::Blocked { reason } => format!("the broker blocks publishers: {reason}"),
        ConnectionState::Closed { reason } => reason,
    };
    Err(PublishError::Refused { why })
}

/// The largest body that the broker takes: as it was set, or as it is known from a refusal or from the version.
pub(super) fn max_message_size(shared: &Shared) -> Option<usize> {
    if let Some(limit) = shared.settings().max_message_size {
        return Some(limit);
    }
    match shared.ground.learned_max_size.load(Ordering::Relaxed) {
        0 => broker::usual_max_size(&shared.greeting),
        limit => Some(limit),
    }
}

/// The limit in the broker's refusal of a body, such as `PRECONDITION_FAILED - message size 20 is larger than configured
/// max size 16`.
pub(super) fn limit_in(text: &str) -> Option<usize> {
    let (_, tail) = text.split_once("message size ")?;
    let (_, tail) = tail.split_once("max size ")?;
    let digits = tail.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_read_from_the_refusal() {
        let text = "PRECONDITION_FAILED - message size 20971520 is larger than configured max size 16777216";
        assert_eq!(limit_in(text), Some(16_777_216));
        assert_eq!(limit_in("PRECONDITION_FAILED - message size 9 larger than max size 8"), Some(8));
        assert_eq!(limit_in("PRECONDITION_FAILED - invalid expiration"), None);
    }
}
