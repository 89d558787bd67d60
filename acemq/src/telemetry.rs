//! What is counted and logged about messages.

use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};

use crate::{
    engine::{Note, Outcome},
    handler::Context,
    policy::render,
};

/// One delivery that has come to its end.
pub(crate) struct Settlement<'a> {
    pub(crate) context: &'a Context,
    pub(crate) outcome: Outcome,
    /// How long the handler took, if it ran.
    pub(crate) handled_for: Option<Duration>,
}

/// What is counted for one consumer.
pub(crate) struct ConsumerTelemetry {
    queue: String,
    duration: Histogram,
    attempts: Histogram,
    outcomes: [Counter; Outcome::ALL.len()],
}

impl std::fmt::Debug for ConsumerTelemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsumerTelemetry").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl ConsumerTelemetry {
    pub(crate) fn new(queue: &str) -> Self {
        Self {
            queue: queue.to_owned(),
            duration: histogram!("acemq.consume.duration", "queue" => queue.to_owned()),
            attempts: histogram!("acemq.consume.attempts", "queue" => queue.to_owned()),
            outcomes: Outcome::ALL.map(
                |outcome| counter!("acemq.consume.total", "queue" => queue.to_owned(), "outcome" => outcome.as_str()),
            ),
        }
    }

    /// Counts and logs a delivery at its settlement, once.
    pub(crate) fn settled(&self, settlement: &Settlement<'_>) {
        let Settlement { context, outcome, handled_for } = settlement;
        if let Some(counter) = self.outcomes.get(*outcome as usize) {
            counter.increment(1);
        }
        if let Some(duration) = handled_for {
            self.duration.record(duration.as_secs_f64());
            self.attempts.record(f64::from(context.attempt()));
        }
        let (queue, id, attempt) = (&self.queue, context.envelope().id(), context.attempt());
        match outcome {
            Outcome::Acked | Outcome::Duplicate => {
                tracing::debug!(queue, id, attempt, outcome = outcome.as_str(), "settled");
            }
            Outcome::Retried | Outcome::Released | Outcome::InProgress | Outcome::Requeued | Outcome::Lost => {
                tracing::info!(queue, id, attempt, outcome = outcome.as_str(), "settled");
            }
            Outcome::DeadLettered | Outcome::Rejected | Outcome::Parked => {
                tracing::warn!(queue, id, attempt, outcome = outcome.as_str(), "set aside");
            }
        }
    }

    /// Counts and logs what happened on the way.
    pub(crate) fn note(&self, context: &Context, note: Note) {
        let (queue, id) = (&self.queue, context.envelope().id());
        match note {
            Note::RungMissing(delay) => {
                let rung = render(delay);
                counter!("acemq.retry.rung.missing", "queue" => queue.clone(), "rung" => rung.clone()).increment(1);
                tracing::error!(queue, id, rung, "a rung is missing; the message waits in the consumer instead");
            }
            Note::MoveAbandoned(target) => {
                let target = target.label();
                counter!("acemq.messages.set.aside.failed", "queue" => queue.clone(), "target" => target).increment(1);
                tracing::error!(queue, id, target, "a copy could not be made; the message goes back to its queue");
            }
            Note::ConfirmFailed | Note::ClaimLost | Note::StoreUnreachable | Note::Unprotected => {
                let what = note.label();
                counter!("acemq.claims", "queue" => queue.clone(), "outcome" => what).increment(1);
                tracing::warn!(queue, id, what, "a message is not protected from duplicates as it should be");
            }
        }
    }
}
