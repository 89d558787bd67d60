//! What is counted and logged about deliveries.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::{Flood, bounded::Bounded, names};
use crate::{
    engine::{Note, Outcome},
    handler::Context,
    policy::render,
};

/// So many types of messages are told apart for each consumer.
const MOST: usize = 100;

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
    attempts: Histogram,
    kinds: Bounded<1, Kind>,
    unsettled: Flood,
    aside: Flood,
    notes: Flood,
}

/// The handles of one type of messages.
struct Kind {
    label: String,
    outcomes: [OnceLock<Handles>; Outcome::ALL.len()],
}

struct Handles {
    total: Counter,
    duration: Histogram,
    /// What the outcome counts besides.
    also: Option<Counter>,
}

impl Kind {
    fn new([label]: [String; 1]) -> Self {
        Self { label, outcomes: Default::default() }
    }

    fn handles(&self, queue: &str, outcome: Outcome) -> Option<&Handles> {
        let handles = self.outcomes.get(outcome as usize)?;
        Some(handles.get_or_init(|| {
            let of = |outcome: Option<&str>| {
                let mut labels = vec![(names::QUEUE, queue.to_owned()), (names::MESSAGE_TYPE, self.label.clone())];
                labels.extend(outcome.map(|outcome| (names::OUTCOME, outcome.to_owned())));
                labels
            };
            let also = match outcome {
                Outcome::Retried => Some(counter!(names::RETRIED, &of(None))),
                Outcome::DeadLettered | Outcome::Rejected => {
                    Some(counter!(names::DEAD_LETTERED, &of(Some(Outcome::DeadLettered.as_str()))))
                }
                Outcome::Parked => Some(counter!(names::DEAD_LETTERED, &of(Some(Outcome::Parked.as_str())))),
                _ => None,
            };
            let labels = of(Some(outcome.as_str()));
            Handles {
                total: counter!(names::CONSUME_TOTAL, &labels),
                duration: histogram!(names::CONSUME_DURATION, &labels),
                also,
            }
        }))
    }
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
            attempts: histogram!(names::CONSUME_ATTEMPTS, names::QUEUE => queue.to_owned()),
            kinds: Bounded::new(MOST, Kind::new),
            unsettled: Flood::default(),
            aside: Flood::default(),
            notes: Flood::default(),
        }
    }

    /// The number of handlers that run.
    pub(crate) fn in_flight(queue: &str) -> Gauge {
        gauge!(names::CONSUME_IN_FLIGHT, names::QUEUE => queue.to_owned())
    }

    /// Counts a delivery that no handler has seen and that goes back.
    pub(crate) fn returned(&self, kind: &str, outcome: Outcome) {
        self.count(kind, outcome, None);
    }

    /// Counts and logs a delivery at its settlement, once.
    pub(crate) fn settled(&self, settlement: &Settlement<'_>) {
        let Settlement { context, outcome, handled_for } = settlement;
        let (queue, id, attempt) = (&self.queue, context.envelope().id(), context.attempt());
        self.count(context.envelope().kind(), *outcome, *handled_for);
        if handled_for.is_some() {
            self.attempts.record(f64::from(attempt));
        }
        let outcome_name = outcome.as_str();
        match outcome {
            Outcome::Acked | Outcome::Duplicate => {
                tracing::debug!(queue, id, attempt, outcome = outcome_name, "settled");
            }
            Outcome::Retried | Outcome::Released | Outcome::InProgress | Outcome::Requeued | Outcome::Lost => {
                if let Some(left_out) = self.unsettled.admit() {
                    tracing::info!(queue, id, attempt, outcome = outcome_name, left_out, "comes again");
                }
            }
            Outcome::DeadLettered | Outcome::Rejected | Outcome::Parked => {
                if let Some(left_out) = self.aside.admit() {
                    tracing::warn!(queue, id, attempt, outcome = outcome_name, left_out, "set aside");
                }
            }
        }
    }

    fn count(&self, kind: &str, outcome: Outcome, handled_for: Option<Duration>) {
        let kind: Arc<Kind> = self.kinds.get([kind], Kind::new);
        if let Some(handles) = kind.handles(&self.queue, outcome) {
            handles.total.increment(1);
            if let Some(also) = &handles.also {
                also.increment(1);
            }
            if let Some(handled_for) = handled_for {
                handles.duration.record(handled_for.as_secs_f64());
            }
        }
    }

    /// Counts and logs what happened on the way.
    pub(crate) fn note(&self, context: &Context, note: Note) {
        let (queue, id) = (&self.queue, context.envelope().id());
        let log = self.notes.admit();
        match note {
            Note::RungMissing(delay) => {
                let rung = render(delay);
                counter!(names::RUNG_MISSING, names::QUEUE => queue.clone(), names::RUNG => rung.clone()).increment(1);
                if let Some(left_out) = log {
                    tracing::error!(queue, id, rung, left_out, "a rung is missing; the message waits in the consumer");
                }
            }
            Note::MoveAbandoned(target) => {
                let target = target.label();
                counter!(names::SET_ASIDE_FAILED, names::QUEUE => queue.clone(), names::TARGET => target).increment(1);
                if let Some(left_out) = log {
                    tracing::error!(queue, id, target, left_out, "a copy could not be made; the message goes back");
                }
            }
            Note::ConfirmFailed | Note::ClaimLost | Note::StoreUnreachable | Note::Unprotected => {
                let what = note.label();
                counter!(names::CLAIMS, names::QUEUE => queue.clone(), names::OUTCOME => what).increment(1);
                if let Some(left_out) = log {
                    tracing::warn!(
                        queue,
                        id,
                        what,
                        left_out,
                        "a message is not protected from duplicates as it should be"
                    );
                }
            }
        }
    }
}
