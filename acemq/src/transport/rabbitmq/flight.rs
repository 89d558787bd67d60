//! One publish on its channel, and what its end means.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use lapin::{Channel, Confirmation, message::BasicReturnMessage, options::BasicPublishOptions, types::ShortString};

use super::{
    fault::Fault,
    publish::{Answer, Job, Parts},
    window::{Confirm, Fate, Key, StrayReturn, Window},
};
use crate::transport::{PublishError, Routing};

/// Bytes of bodies that lapin may hold unwritten before it gets more.
///
/// It bounds the memory, and the harm of a channel that the broker closes: lapin still writes what it holds for it, after
/// the farewell, and the broker answers that by closing the connection.
const UNWRITTEN: usize = 1 << 20;

/// What became of one publish, as far as lapin knows.
pub(super) enum Outcome {
    Unwritten(Fault),
    Unconfirmed(Fault),
    Confirmed { ack: bool, returned: Option<Box<BasicReturnMessage>> },
}

impl Outcome {
    /// Whether the broker said it.
    pub(super) fn is_answer(&self) -> bool {
        matches!(self, Self::Confirmed { .. })
    }
}

/// A publish that lapin gave up.
pub(super) struct Loss {
    pub(super) number: u64,
    pub(super) fault: Fault,
    pub(super) written: bool,
}

/// What is counted across the publishes of one channel.
#[derive(Default)]
pub(super) struct Meter {
    /// Bytes of bodies that are not written yet.
    pub(super) unwritten: AtomicUsize,
}

impl Meter {
    /// Whether lapin holds so much that it should get no more.
    pub(super) fn is_full(&self) -> bool {
        self.unwritten.load(Ordering::Relaxed) >= UNWRITTEN
    }
}

/// One publish from its frames to its confirm. It is polled by the lane's task only.
pub(super) async fn publish(
    channel: &Channel,
    number: u64,
    parts: Parts,
    body: Bytes,
    mandatory: bool,
    meter: &Meter,
) -> (u64, Outcome) {
    let options = BasicPublishOptions { mandatory, immediate: false };
    let Parts { exchange, routing_key, properties } = parts;
    let written = channel.basic_publish(exchange, routing_key, options, &body, properties).await;
    meter.unwritten.fetch_sub(body.len(), Ordering::Relaxed);
    let confirm = match written {
        Ok(confirm) => confirm,
        Err(error) => return (number, Outcome::Unwritten(Fault::from(&error))),
    };
    let confirmed = |ack, returned: Option<_>| Outcome::Confirmed { ack, returned: returned.map(Box::new) };
    let outcome = match confirm.await {
        Ok(Confirmation::Ack(returned)) => confirmed(true, returned),
        Ok(Confirmation::Nack(returned)) => confirmed(false, returned),
        Ok(Confirmation::NotRequested) => Outcome::Unconfirmed(Fault::connection("the channel gives no confirms")),
        Err(error) => Outcome::Unconfirmed(Fault::from(&error)),
    };
    (number, outcome)
}

/// Answers what can be answered, and gives back what was lost.
pub(super) fn settle(window: &mut Window<Job>, outcomes: &mut Vec<(u64, Outcome)>) -> Result<Vec<Loss>, StrayReturn> {
    let mut lost = Vec::new();
    let mut confirms = Vec::with_capacity(outcomes.len());
    for (number, outcome) in outcomes.drain(..) {
        match outcome {
            Outcome::Confirmed { ack, returned } => {
                let returned = returned.map(|message| returned_key(window, &message));
                confirms.push(Confirm { number, ack, returned });
            }
            Outcome::Unwritten(fault) => lost.push(Loss { number, fault, written: false }),
            Outcome::Unconfirmed(fault) => lost.push(Loss { number, fault, written: true }),
        }
    }
    window.round(&mut confirms, |job, fate| job.answer(verdict(fate)))?;
    Ok(lost)
}

fn returned_key(window: &Window<Job>, message: &BasicReturnMessage) -> (Key, String) {
    let id = message.properties.message_id().as_ref().map(ShortString::as_str);
    let key = window.key(id, message.exchange.as_str(), message.routing_key.as_str());
    (key, message.reply_text.to_string())
}

fn verdict(fate: Fate) -> Answer {
    match fate {
        Fate::Routed => Ok(Routing::Routed),
        Fate::Returned { text } => Ok(Routing::Returned { text }),
        Fate::Nacked => Err(PublishError::Nacked),
    }
}

pub(super) fn unknown(why: &str) -> Answer {
    Err(PublishError::Unknown { why: why.to_owned() })
}
