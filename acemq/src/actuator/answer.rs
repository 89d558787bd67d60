//! The answers.

use std::time::SystemTime;

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use super::{HEALTH, INFO, METRICS, exporter};
use crate::{
    Handle,
    health::{Health, Status},
    policy::{Place, render},
    registry::Registration,
};

/// The format of Prometheus text.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) async fn health(State(handle): State<Handle>) -> Response {
    let health = handle.health().await;
    let code = match health.status {
        Status::Up | Status::Degraded => StatusCode::OK,
        Status::Down => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, json_text(&health_json(&health))).into_response()
}

pub(super) async fn metrics() -> Response {
    if let Some(exporter) = exporter::installed() {
        ([(header::CONTENT_TYPE, EXPOSITION)], exporter.render()).into_response()
    } else {
        let why = "the metrics of this process go to a recorder that the application has installed itself\n";
        (StatusCode::NOT_FOUND, why).into_response()
    }
}

pub(super) async fn info(State(handle): State<Handle>) -> Response {
    let facts = handle.facts();
    let started = facts.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    json_text(&json!({
        "acemq": env!("CARGO_PKG_VERSION"),
        "origin": facts.origin,
        "transport": facts.transport,
        "address": facts.address,
        "startedAt": started.as_secs(),
        "consumers": facts.consumers.iter().map(consumer).collect::<Vec<_>>(),
    }))
    .into_response()
}

fn consumer(registration: &Registration) -> Value {
    let spec = &registration.spec;
    let schedule: Vec<Value> = spec
        .retry
        .schedule()
        .take(20)
        .map(|step| {
            let place = match step.place {
                Place::Consumer => "consumer",
                Place::Broker => "broker",
            };
            json!({ "delay": render(step.delay), "in": place })
        })
        .collect();
    json!({
        "name": registration.name,
        "queue": spec.queue,
        "at": format!("{}:{}", registration.location.file, registration.location.line),
        "attempts": spec.retry.attempts(),
        "waits": schedule,
        "prefetch": spec.prefetch,
        "concurrency": spec.concurrency,
        "timeout": spec.timeout.map(render),
        "idempotent": spec.idempotent.is_some(),
    })
}

pub(super) async fn unknown() -> Response {
    (StatusCode::NOT_FOUND, format!("there is {HEALTH}, {METRICS} and {INFO}\n")).into_response()
}

/// Answers are of this moment, and never anything but what they say they are.
pub(super) async fn plain(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn json_text(value: &Value) -> impl IntoResponse + use<> {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string())
}

fn health_json(health: &Health) -> Value {
    let components: Map<String, Value> = health
        .components()
        .into_iter()
        .map(|(name, component)| {
            let mut flat: Map<String, Value> =
                component.details.into_iter().map(|(name, detail)| (name, Value::String(detail))).collect();
            // Last, so that no detail takes its place.
            flat.insert("status".to_owned(), component.status.as_str().into());
            (name, Value::Object(flat))
        })
        .collect();
    json!({ "status": health.status.as_str(), "inFlight": health.in_flight(), "components": components })
}
