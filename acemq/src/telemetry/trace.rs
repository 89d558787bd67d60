//! The way of a trace through a message: the headers `traceparent` and `tracestate` of the W3C, and the events of a span.
//!
//! Without the feature `otel` nothing goes along, and headers of others stay as they are.

#[cfg(feature = "otel")]
pub(super) use self::otel::{dead_lettered, follow, retried, tell};

#[cfg(not(feature = "otel"))]
pub(super) use self::nothing::{dead_lettered, follow, retried, tell};

#[cfg(feature = "otel")]
mod otel {
    use std::time::Duration;

    use opentelemetry::{
        Context, KeyValue,
        propagation::{Extractor, Injector, TextMapPropagator},
    };
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use tracing::Span;
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    use crate::envelope::{Table, Value};

    const REASON: &str = "messaging.acemq.reason";

    /// Writes the span into the headers, unless its publisher has written another one.
    pub(in super::super) fn tell(span: &Span, headers: &mut Table) {
        if !headers.contains_key("traceparent") {
            TraceContextPropagator::new().inject_context(&span.context(), &mut Writer(headers));
        }
    }

    /// Puts the span into the trace that the headers tell of.
    pub(in super::super) fn follow(span: &Span, headers: &Table) {
        let told = TraceContextPropagator::new().extract_with_context(&Context::new(), &Reader(headers));
        // It fails where no subscriber keeps traces, or has left this span out.
        let _ = span.set_parent(told);
    }

    pub(in super::super) fn retried(span: &Span, wait: Duration, reason: &str) {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let delay = KeyValue::new("messaging.acemq.retry_delay_ms", wait);
        span.add_event("message.retried", vec![delay, KeyValue::new(REASON, reason.to_owned())]);
    }

    pub(in super::super) fn dead_lettered(span: &Span, reason: &str) {
        span.add_event("message.dead_lettered", vec![KeyValue::new(REASON, reason.to_owned())]);
    }

    struct Writer<'a>(&'a mut Table);

    impl Injector for Writer<'_> {
        fn set(&mut self, key: &str, value: String) {
            self.0.insert(key.to_owned(), Value::from(value));
        }
    }

    struct Reader<'a>(&'a Table);

    impl Extractor for Reader<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            self.0.get(key).and_then(Value::as_text)
        }

        fn keys(&self) -> Vec<&str> {
            self.0.keys().map(String::as_str).collect()
        }
    }
}

#[cfg(not(feature = "otel"))]
mod nothing {
    use std::time::Duration;

    use tracing::Span;

    use crate::envelope::Table;

    pub(in super::super) fn tell(_: &Span, _: &mut Table) {}
    pub(in super::super) fn follow(_: &Span, _: &Table) {}
    pub(in super::super) fn retried(_: &Span, _: Duration, _: &str) {}
    pub(in super::super) fn dead_lettered(_: &Span, _: &str) {}
}
