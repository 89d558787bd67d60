//! The counters of one test.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, LocalRecorderGuard, Metadata, Recorder, SharedString, Unit,
    set_default_local_recorder,
};

/// Counts for as long as the guard lives what is counted on this thread.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<(String, String), Arc<AtomicU64>>>);

pub(crate) fn counted() -> (&'static Counts, LocalRecorderGuard<'static>) {
    // The guard borrows it; it is small.
    let counts: &'static Counts = Box::leak(Box::default());
    (counts, set_default_local_recorder(counts))
}

impl Counts {
    fn of(&self, name: &str, outcome: &str) -> u64 {
        let counters = self.0.lock().unwrap();
        counters.get(&(name.to_owned(), outcome.to_owned())).map_or(0, |counter| counter.load(Ordering::SeqCst))
    }

    /// What claim stores did not do.
    pub(crate) fn claims(&self, outcome: &str) -> u64 {
        self.of("acemq.claims.total", outcome)
    }

    /// What deliveries became.
    pub(crate) fn deliveries(&self, outcome: &str) -> u64 {
        self.of("acemq.consume.total", outcome)
    }
}

impl Recorder for Counts {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let outcome = key.labels().find(|label| label.key() == "outcome").map_or("", metrics::Label::value);
        let mut counters = self.0.lock().unwrap();
        let counter = counters.entry((key.name().to_owned(), outcome.to_owned())).or_default();
        Counter::from_arc(Arc::clone(counter))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
