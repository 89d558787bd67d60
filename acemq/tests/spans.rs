//! The spans that are exported, name by name, and the way of a trace through the broker.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test fails by a panic"
)]

use std::{sync::LazyLock, time::Duration};

use acemq::{Ack, App, Context, Publisher, Text, consumer, transport::memory::Memory};
use opentelemetry::{
    Value,
    trace::{SpanId, SpanKind, Status, TracerProvider as _},
};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing::Instrument;
use tracing_subscriber::layer::SubscriberExt;

static EXPORTED: LazyLock<InMemorySpanExporter> = LazyLock::new(|| {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("acemq"));
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
    // Without its provider the tracer exports nothing.
    std::mem::forget(provider);
    exporter
});

/// The finished spans of a name, in the order of their end.
fn finished(name: &str) -> Vec<SpanData> {
    EXPORTED.get_finished_spans().unwrap().into_iter().filter(|span| span.name == name).collect()
}

fn attribute(span: &SpanData, name: &str) -> Option<Value> {
    span.attributes.iter().find(|attribute| attribute.key.as_str() == name).map(|attribute| attribute.value.clone())
}

fn text(span: &SpanData, name: &str) -> String {
    attribute(span, name).unwrap_or_else(|| panic!("no {name} in {span:#?}")).to_string()
}

#[consumer(queue = "spans.work", declare = quorum, retry = fixed(2, "25m", wait_in_broker_from = "1d", jitter = 0.0))]
async fn work(Text(what): Text, context: Context, publisher: Publisher) -> Result<Ack, &'static str> {
    match (what.as_str(), context.attempt()) {
        ("reject", _) => return Ok(Ack::dead_letter("it is of no use")),
        ("retry", 1) => return Err("not yet"),
        _ => {}
    }
    publisher
        .to_queue("spans.next")
        .kind("work.done")
        .cause(context.envelope())
        .send_raw("text/plain", what)
        .await
        .unwrap();
    Ok(Ack::accept())
}

#[consumer(queue = "spans.next", declare = quorum)]
async fn next(_: Text) {}

#[tokio::test(start_paused = true)]
async fn a_trace_goes_from_a_publish_through_every_try_to_what_the_handler_publishes() {
    LazyLock::force(&EXPORTED);
    let broker = Memory::private();
    let app = App::new().transport(broker.clone()).consumer::<work>().consumer::<next>();
    let running = app.start().await.unwrap();
    let ambient = tracing::info_span!("ambient");
    let publish = running.publisher().to_queue("spans.work").kind("work.ordered").id("id-1");
    publish.send_raw("text/plain", "retry").instrument(ambient).await.unwrap();

    // The first try has come to its end, and its wait has not.
    while running.account().left.waiting == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let first = finished("spans.work process");
    assert_eq!(first.len(), 1, "the span ends at the decision");
    tokio::time::sleep(Duration::from_mins(26)).await;
    running.settled().await;
    let _ = running.close().await;

    let published = &finished("spans.work publish")[0];
    assert_eq!(published.span_kind, SpanKind::Producer);
    assert_eq!(published.parent_span_id, finished("ambient")[0].span_context.span_id());
    for (name, value) in [
        ("messaging.system", "rabbitmq"),
        ("messaging.operation", "publish"),
        ("messaging.destination.name", "spans.work"),
        ("messaging.rabbitmq.destination.routing_key", "spans.work"),
        ("messaging.message.id", "id-1"),
        ("messaging.acemq.message_type", "work.ordered"),
        ("messaging.acemq.attempt", "1"),
        ("messaging.acemq.outcome", "confirmed"),
    ] {
        assert_eq!(text(published, name), value, "{name}");
    }

    let tries = finished("spans.work process");
    assert_eq!(tries.len(), 2);
    for (at, outcome) in ["retried", "acked"].into_iter().enumerate() {
        let span = &tries[at];
        assert_eq!(span.span_kind, SpanKind::Consumer);
        assert_eq!(span.parent_span_id, published.span_context.span_id(), "of the publish, whatever runs elsewhere");
        assert_eq!(span.span_context.trace_id(), published.span_context.trace_id());
        for (name, value) in [
            ("messaging.system", "rabbitmq"),
            ("messaging.operation", "process"),
            ("messaging.destination.name", "spans.work"),
            ("messaging.message.id", "id-1"),
            ("messaging.acemq.message_type", "work.ordered"),
            ("messaging.acemq.attempt", &(at + 1).to_string()),
            ("messaging.acemq.outcome", outcome),
        ] {
            assert_eq!(text(span, name), value, "{name}");
        }
        let conversation = "messaging.message.conversation_id";
        assert_eq!(attribute(span, conversation), attribute(published, conversation));
    }
    assert_eq!(tries[0].status, Status::error("not yet"));
    let events = &tries[0].events.events;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].name, "message.retried");
    let said: Vec<_> = events[0].attributes.iter().map(|said| (said.key.as_str(), said.value.to_string())).collect();
    let wait = Duration::from_mins(25).as_millis().to_string();
    assert_eq!(said, [("messaging.acemq.retry_delay_ms", wait), ("messaging.acemq.reason", "not yet".to_owned())]);
    assert_eq!((&tries[1].status, tries[1].events.events.len()), (&Status::Unset, 0));

    let inner = &finished("spans.next publish")[0];
    assert_eq!(inner.parent_span_id, tries[1].span_context.span_id(), "a handler publishes within its delivery");
    assert_eq!(finished("spans.next process")[0].parent_span_id, inner.span_context.span_id());
}

#[consumer(queue = "spans.aside", declare = quorum, retry = none)]
async fn aside(_: Text) -> Ack {
    Ack::dead_letter("it is of no use")
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_trace_begins_one_and_a_dead_letter_says_why() {
    LazyLock::force(&EXPORTED);
    let broker = Memory::private();
    let running = App::new().transport(broker.clone()).consumer::<aside>().start().await.unwrap();
    let stranger = acemq::transport::Outgoing {
        exchange: String::new(),
        routing_key: "spans.aside".to_owned(),
        mandatory: true,
        properties: acemq::envelope::Properties::default(),
        body: "anything".into(),
    };
    let _ = broker.publish(stranger).unwrap();
    broker.wait_until(|view| view.depth("spans.aside.dlq") == 1).await;
    let _ = running.close().await;

    let span = &finished("spans.aside process")[0];
    assert_eq!(span.parent_span_id, SpanId::INVALID);
    assert_eq!(text(span, "messaging.acemq.outcome"), "rejected");
    let event = &span.events.events[0];
    assert_eq!(event.name, "message.dead_lettered");
    assert_eq!(event.attributes[0].value.to_string(), "rejected by the handler: it is of no use");
    assert!(matches!(&span.status, Status::Error { description } if description.contains("of no use")));
}

#[tokio::test(start_paused = true)]
async fn a_publish_that_finds_no_queue_is_an_error_in_its_span() {
    LazyLock::force(&EXPORTED);
    let running = App::new().transport(Memory::private()).consumer::<next>().start().await.unwrap();
    running.publisher().to_queue("spans.nowhere").send_raw("text/plain", "x").await.unwrap_err();
    let _ = running.close().await;
    let span = &finished("spans.nowhere publish")[0];
    assert_eq!(text(span, "messaging.acemq.outcome"), "unroutable");
    assert!(matches!(&span.status, Status::Error { .. }));
}
