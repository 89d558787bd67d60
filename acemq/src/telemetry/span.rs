//! The spans of publishes and of deliveries, under the names and attributes of the family.

use std::time::Duration;

use tracing::{Span, field::Empty, info_span};

use super::trace;
use crate::{engine::Outcome, envelope::Envelope, handler::Context, transport::Outgoing};

const OUTCOME: &str = "messaging.acemq.outcome";
const STATUS: &str = "otel.status_code";
const DESCRIPTION: &str = "otel.status_description";

/// The span of a publish: within whatever runs now, and told to the message.
pub(crate) fn publishing(envelope: &Envelope, message: &mut Outgoing) -> Span {
    let destination = if message.exchange.is_empty() { &message.routing_key } else { &message.exchange };
    let span = info_span!(
        "publish",
        otel.name = %format_args!("{destination} publish"),
        otel.kind = "producer",
        otel.status_code = Empty,
        otel.status_description = Empty,
        messaging.system = "rabbitmq",
        messaging.operation = "publish",
        messaging.destination.name = destination,
        messaging.rabbitmq.destination.routing_key = message.routing_key,
        messaging.message.id = envelope.id(),
        messaging.message.conversation_id = envelope.correlation(),
        messaging.acemq.message_type = envelope.kind(),
        messaging.acemq.attempt = envelope.attempt(),
        messaging.acemq.outcome = Empty,
    );
    trace::tell(&span, &mut message.properties.headers);
    span
}

/// Says what became of a publish.
pub(crate) fn published(span: &Span, outcome: &'static str, error: Option<&dyn std::fmt::Display>) {
    span.record(OUTCOME, outcome);
    if let Some(error) = error {
        failed(span, error);
    }
}

/// The span of a delivery: within the publish that the message tells of, and never within what happens to run now.
pub(crate) fn processing(context: &Context) -> Span {
    let envelope = context.envelope();
    let span = info_span!(
        parent: None,
        "process",
        otel.name = %format_args!("{} process", context.queue()),
        otel.kind = "consumer",
        otel.status_code = Empty,
        otel.status_description = Empty,
        messaging.system = "rabbitmq",
        messaging.operation = "process",
        messaging.destination.name = context.queue(),
        messaging.rabbitmq.destination.routing_key = context.routing_key(),
        messaging.message.id = envelope.id(),
        messaging.message.conversation_id = envelope.correlation(),
        messaging.acemq.message_type = envelope.kind(),
        messaging.acemq.attempt = envelope.attempt(),
        messaging.acemq.outcome = Empty,
    );
    trace::follow(&span, &context.properties().headers);
    span
}

/// Says what a delivery is going to become. A wait that follows is not part of its span.
pub(crate) fn decided(span: &Span, outcome: Outcome, wait: Duration, reason: Option<&str>) {
    span.record(OUTCOME, outcome.as_str());
    match outcome {
        Outcome::Retried => trace::retried(span, wait, reason.unwrap_or_default()),
        Outcome::DeadLettered | Outcome::Rejected | Outcome::Parked => {
            trace::dead_lettered(span, reason.unwrap_or_default());
        }
        _ => return,
    }
    failed(span, &reason.unwrap_or(outcome.as_str()));
}

fn failed(span: &Span, why: &dyn std::fmt::Display) {
    span.record(STATUS, "ERROR");
    span.record(DESCRIPTION, tracing::field::display(why));
}
