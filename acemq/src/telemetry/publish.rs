//! What is counted about publishes.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use metrics::{Counter, Histogram, counter, histogram};

use super::{bounded::Bounded, names};

/// So many combinations of exchange, routing key and type are told apart.
const MOST: usize = 200;

/// What became of a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublishOutcome {
    /// A queue has it.
    Confirmed,
    /// No queue took it.
    Unroutable,
    /// It may have arrived.
    Failed,
    /// It was never sent.
    Refused,
}

impl PublishOutcome {
    const ALL: [Self; 4] = [Self::Confirmed, Self::Unroutable, Self::Failed, Self::Refused];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Unroutable => "unroutable",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// What is counted for the publishes of one application.
pub(crate) struct PublisherTelemetry {
    routes: Bounded<3, Route>,
}

/// The handles of one exchange, routing key and type.
pub(crate) struct Route {
    labels: [String; 3],
    outcomes: [OnceLock<(Counter, Histogram)>; PublishOutcome::ALL.len()],
}

impl PublisherTelemetry {
    pub(crate) fn new() -> Self {
        Self { routes: Bounded::new(MOST, Route::new) }
    }

    pub(crate) fn route(&self, exchange: &str, routing_key: &str, kind: &str) -> Arc<Route> {
        self.routes.get([exchange, routing_key, kind], Route::new)
    }
}

impl std::fmt::Debug for PublisherTelemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublisherTelemetry").finish_non_exhaustive()
    }
}

impl Route {
    fn new(labels: [String; 3]) -> Self {
        Self { labels, outcomes: Default::default() }
    }

    /// Counts one publish, once.
    pub(crate) fn published(&self, outcome: PublishOutcome, took: Duration) {
        let Some(handles) = self.outcomes.get(outcome as usize) else {
            return;
        };
        let (total, duration) = handles.get_or_init(|| {
            let [exchange, routing_key, kind] = self.labels.clone();
            let labels = [
                (names::EXCHANGE, exchange),
                (names::ROUTING_KEY, routing_key),
                (names::MESSAGE_TYPE, kind),
                (names::OUTCOME, outcome.as_str().to_owned()),
            ];
            (counter!(names::PUBLISH_TOTAL, &labels), histogram!(names::PUBLISH_DURATION, &labels))
        });
        total.increment(1);
        duration.record(took.as_secs_f64());
    }
}
