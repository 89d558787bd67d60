//! The Prometheus exporter, for applications that have installed no recorder.

use std::{sync::OnceLock, time::Duration};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;

use crate::telemetry::names;

/// The recorder is the process's, so the exporter is too.
static EXPORTER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// From a millisecond to longer than most handlers are allowed to take.
const SECONDS: [f64; 14] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

const ATTEMPTS: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];

/// How often what was recorded is put together, so that it does not pile up when nobody scrapes.
const UPKEEP: Duration = Duration::from_secs(5);

/// Whether the metrics of this process go to the exporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exporter {
    /// They do.
    Installed,
    /// The application has installed a recorder of its own, which keeps them.
    Another,
}

/// Installs the Prometheus exporter as the recorder of this process, unless there is one. `App::actuator` does so.
///
/// It has to be done before the application starts: what is counted earlier is lost.
pub fn install_exporter() -> Exporter {
    let exporter = EXPORTER.get_or_init(|| {
        let recorder = builder()
            .inspect_err(|error| tracing::error!(%error, "the Prometheus exporter cannot be built"))
            .ok()?
            .build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).is_ok().then_some(handle)
    });
    if exporter.is_some() { Exporter::Installed } else { Exporter::Another }
}

#[allow(deprecated, reason = "the recommended naming also renames counters, and the family's names are fixed")]
fn builder() -> Result<PrometheusBuilder, metrics_exporter_prometheus::BuildError> {
    PrometheusBuilder::new()
        .set_enable_unit_suffix(true)
        .set_buckets_for_metric(Matcher::Full(names::CONSUME_DURATION.to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Full(names::PUBLISH_DURATION.to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Full(names::CONSUME_ATTEMPTS.to_owned()), &ATTEMPTS)
}

/// The exporter, if it is the recorder of this process.
pub(crate) fn installed() -> Option<&'static PrometheusHandle> {
    EXPORTER.get()?.as_ref()
}

/// Puts together what was recorded, until the end.
pub(crate) async fn upkeep(end: CancellationToken) {
    while let Some(exporter) = installed() {
        tokio::select! {
            biased;
            () = end.cancelled() => return,
            () = tokio::time::sleep(UPKEEP) => exporter.run_upkeep(),
        }
    }
}
