//! Health, metrics and information over HTTP, for an orchestrator, a Prometheus server and a person with `curl`.
//!
//! - `/acemq-health`: [`Health`](crate::health::Health) as JSON; 200 while the application is up or degraded, 503 when it is
//!   down.
//! - `/acemq-metrics`: the metrics as Prometheus text.
//! - `/acemq-info`: what runs here: the broker's address without credentials, and every consumer with its schedule.
//!
//! `App::actuator` serves them on an address of their own. There is no password: the default address is not reached from
//! other machines, and requests for a host name that is not `localhost` are refused, so that a web page cannot have its name
//! point here and read the answers.
//!
//! A service that has an HTTP server of its own mounts [`router`] there.

mod answer;
mod exporter;
mod host;
mod serve;

use axum::{Router, routing::get};
pub use exporter::{Exporter, install_exporter};
pub(crate) use exporter::{installed, upkeep};
pub(crate) use host::Hosts;
pub(crate) use serve::serve;

use crate::Handle;

/// Where health and metrics are served unless the application says otherwise.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:9464";

const HEALTH: &str = "/acemq-health";
const METRICS: &str = "/acemq-metrics";
const INFO: &str = "/acemq-info";

/// The three routes, for a service with an HTTP server of its own.
///
/// For metrics the application needs a recorder before it starts: its own, or the one of [`install_exporter`]. Which hosts
/// and addresses are answered is the server's business.
///
/// # Examples
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// acemq::actuator::install_exporter();
/// let running = acemq::App::new().start().await?;
/// let service = axum::Router::new().merge(acemq::actuator::router(&running));
/// # Ok(()) }
/// ```
pub fn router(handle: &Handle) -> Router {
    Router::new()
        .route(HEALTH, get(answer::health))
        .route(METRICS, get(answer::metrics))
        .route(INFO, get(answer::info))
        .layer(axum::middleware::map_response(answer::plain))
        .with_state(handle.clone())
}

/// The routes with everything that a server of their own needs.
pub(crate) fn guarded(handle: &Handle, hosts: Hosts) -> Router {
    router(handle)
        .fallback(answer::unknown)
        .layer(axum::middleware::from_fn_with_state(std::sync::Arc::new(hosts), host::check))
}
