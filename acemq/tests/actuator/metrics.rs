//! A scrape of a run in which everything happens that can happen to a message.

use std::{collections::BTreeMap, time::Duration};

use acemq::{
    Ack, App, Context, Running, State, Text, consumer,
    envelope::{Properties, Table, Value},
    idempotency::MemoryStore,
    transport::{Outgoing, memory::Memory},
};
use tokio::sync::Semaphore;

use super::client::{get, start};

#[derive(Clone)]
struct Go(std::sync::Arc<Semaphore>);

/// Becomes what the message says.
#[consumer(
    queue = "metered", declare = quorum, name = "metered", prefetch = 100, idempotent(in_progress_delay = "1s"),
    retry = fixed(2, "1s", wait_in_broker_from = "1m")
)]
async fn metered(Text(what): Text, State(go): State<Go>, context: Context) -> Ack {
    match &*what {
        "accept" => Ack::accept(),
        "fail" => Ack::retry("no"),
        "reject" => Ack::dead_letter("never"),
        "park" => Ack::park("look"),
        "release" if context.redelivered() => Ack::accept(),
        "release" => Ack::release(),
        // Until it is let go, or its channel is lost.
        "work" => {
            go.0.acquire().await.unwrap().forget();
            Ack::accept()
        }
        other => panic!("{other}"),
    }
}

/// Waits in a rung, which is not there.
#[consumer(queue = "rungless", declare = quorum, name = "rungless", retry = fixed(2, "40s"))]
async fn rungless(_: Text) -> Result<(), String> {
    Err("no".to_owned())
}

fn message(queue: &str, id: &str, kind: &str, body: &str) -> Outgoing {
    let kind = ("x-acemq-type".to_owned(), Value::from(kind));
    let properties = Properties {
        content_type: Some("text/plain".to_owned()),
        message_id: (!id.is_empty()).then(|| id.to_owned()),
        headers: Table::from([kind]),
        ..Properties::default()
    };
    let (exchange, routing_key) = (String::new(), queue.to_owned());
    Outgoing { exchange, routing_key, mandatory: true, properties, body: body.to_owned().into() }
}

fn put(broker: &Memory, queue: &str, id: &str, kind: &str, body: &str) {
    let _ = broker.publish(message(queue, id, kind, body)).unwrap();
}

/// The samples of a scrape: name and sorted labels, with the value.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let series = match series.split_once('{') {
                None => series.to_owned(),
                Some((name, labels)) => {
                    let mut labels: Vec<&str> = labels.trim_end_matches('}').split(',').collect();
                    labels.sort_unstable();
                    format!("{name} {}", labels.join(" "))
                }
            };
            (series, value.parse().unwrap())
        })
        .collect()
}

async fn scrape(running: &Running) -> String {
    // Sockets know nothing of paused time, and their deadlines must not pass at once.
    tokio::time::resume();
    let answer = get(running, "/acemq-metrics").await;
    tokio::time::pause();
    assert_eq!(answer.code, 200);
    answer.body
}

async fn publishes(running: &Running, broker: &Memory) {
    let publisher = running.publisher();
    let send = |queue: &str| publisher.to_queue(queue).kind("sent").header("h", 1).send_raw("text/plain", "accept");
    send("metered").await.unwrap();
    send("nowhere").await.unwrap_err();
    broker.nack_next(1);
    send("metered").await.unwrap_err();
    running.pause_publishing();
    send("metered").await.unwrap_err();
    running.resume_publishing();
}

#[tokio::test(start_paused = true)]
async fn every_metric_and_label_of_the_vocabulary_is_there_and_the_outcomes_add_up_to_the_deliveries() {
    let (broker, go) = (Memory::private(), Go(std::sync::Arc::new(Semaphore::new(0))));
    let app = App::new().state(go.clone()).idempotency(MemoryStore::new());
    let running = start(app.consumer::<metered>().consumer::<rungless>(), &broker).await;
    publishes(&running, &broker).await;
    for (id, what) in [("1", "accept"), ("2", "fail"), ("3", "reject"), ("4", "park"), ("5", "release"), ("", "accept")]
    {
        put(&broker, "metered", id, "order.placed", what);
    }
    let mut undecodable = message("metered", "6", "order.placed", "<order/>");
    undecodable.properties.content_type = Some("application/octet-stream".to_owned());
    undecodable.body = vec![0xff, 0xfe].into();
    let _ = broker.publish(undecodable).unwrap();
    broker.delete_queue("rungless.retry.40s");
    put(&broker, "rungless", "7", "order.placed", "a");
    running.settled().await;

    // One in a handler, its double in progress and then a duplicate.
    put(&broker, "metered", "8", "order.placed", "work");
    put(&broker, "metered", "8", "order.placed", "work");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(samples(&scrape(&running).await)["acemq_consume_in_flight queue=\"metered\""], 1.0);
    go.0.add_permits(1);
    running.settled().await;
    broker.wait_until(|view| view.depth("metered") == 0).await;
    running.settled().await;

    // A dead letter that the broker does not take, and that comes back in vain.
    broker.nack_next(usize::MAX);
    put(&broker, "metered", "9", "order.placed", "reject");
    tokio::time::sleep(Duration::from_secs(12)).await;
    broker.nack_next(0);
    // And one whose channel is lost under its handler.
    put(&broker, "metered", "10", "order.placed", "work");
    tokio::time::sleep(Duration::from_millis(100)).await;
    broker.close_channels("metered");
    tokio::time::sleep(Duration::from_secs(1)).await;
    go.0.add_permits(2);
    tokio::time::sleep(Duration::from_secs(1)).await;

    let text = scrape(&running).await;
    let scraped = samples(&text);
    let value = |series: &str| *scraped.get(series).unwrap_or_else(|| panic!("no `{series}` in:\n{text}"));
    let consumed = |kind: &str, outcome: &str| {
        value(&format!("acemq_consume_total message_type=\"{kind}\" outcome=\"{outcome}\" queue=\"metered\""))
    };
    assert_eq!(consumed("sent", "acked"), 1.0);
    for outcome in [
        "acked",
        "retried",
        "dead_lettered",
        "rejected",
        "parked",
        "released",
        "in_progress",
        "duplicate",
        "requeued",
        "lost",
    ] {
        assert!(consumed("order.placed", outcome) >= 1.0, "{outcome}");
    }
    let of = "message_type=\"order.placed\"";
    assert_eq!(value(&format!("acemq_messages_retried_total {of} queue=\"metered\"")), 1.0);
    for (outcome, count) in [("dead_lettered", 3.0), ("parked", 2.0)] {
        let series = format!("acemq_messages_dead_lettered_total {of} outcome=\"{outcome}\" queue=\"metered\"");
        assert_eq!(value(&series), count, "{outcome}");
    }
    assert!(value("acemq_messages_set_aside_failed queue=\"metered\" target=\"dead_letter\"") >= 1.0);
    assert_eq!(value("acemq_retry_rung_missing queue=\"rungless\" rung=\"40s\""), 1.0);
    assert_eq!(value("acemq_claims_total outcome=\"unprotected\" queue=\"metered\""), 1.0);
    for bound in 1..=10 {
        value(&format!("acemq_consume_attempts_bucket le=\"{bound}\" queue=\"metered\""));
    }
    assert!(
        value("acemq_consume_attempts_bucket le=\"1\" queue=\"metered\"")
            < value("acemq_consume_attempts_bucket le=\"2\" queue=\"metered\"")
    );
    assert!(value(&format!("acemq_consume_duration_seconds_count {of} outcome=\"acked\" queue=\"metered\"")) >= 3.0);
    let unhandled = format!("acemq_consume_duration_seconds_count {of} outcome=\"duplicate\" queue=\"metered\"");
    assert!(scraped.get(&unhandled).is_none_or(|count| *count < 0.5), "no handler ran for a duplicate");
    for (outcome, routing_key) in
        [("confirmed", "metered"), ("unroutable", "nowhere"), ("failed", "metered"), ("refused", "metered")]
    {
        let labels = format!("exchange=\"\" message_type=\"sent\" outcome=\"{outcome}\" routing_key=\"{routing_key}\"");
        assert_eq!(value(&format!("acemq_publish_total {labels}")), 1.0);
        assert_eq!(value(&format!("acemq_publish_duration_seconds_count {labels}")), 1.0);
    }
    for (name, kind) in [
        ("acemq_publish_total", "counter"),
        ("acemq_publish_duration_seconds", "histogram"),
        ("acemq_consume_total", "counter"),
        ("acemq_consume_duration_seconds", "histogram"),
        ("acemq_consume_attempts", "histogram"),
        ("acemq_consume_in_flight", "gauge"),
        ("acemq_messages_retried_total", "counter"),
        ("acemq_messages_dead_lettered_total", "counter"),
        ("acemq_messages_set_aside_failed", "counter"),
        ("acemq_retry_rung_missing", "counter"),
    ] {
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name} is no {kind} in:\n{text}");
    }
    assert!(!text.lines().any(|line| line.starts_with("acemq")
        && line.split(' ').next().unwrap().replace("order.placed", "").split('{').next().unwrap().contains('.')));

    let account = running.account();
    let settled = u64::try_from(account.left.total()).map(|left| account.totals.delivered - left).unwrap();
    let counted: f64 = scraped
        .iter()
        .filter(|(series, _)| {
            series.starts_with("acemq_consume_total ")
                && (series.contains("\"metered\"") || series.contains("\"rungless\""))
        })
        .map(|(_, value)| value)
        .sum();
    assert!((counted - f64::from(u32::try_from(settled).unwrap())).abs() < 0.5, "{counted} counted, {settled} settled");
    let _ = running.close().await;
}

#[consumer(queue = "strangers", declare = quorum, name = "strangers")]
async fn strangers(_: Text) {}

#[tokio::test(start_paused = true)]
async fn types_that_strangers_invent_make_no_series_without_end() {
    let broker = Memory::private();
    let running = start(App::new().consumer::<strangers>(), &broker).await;
    for at in 0..1_000 {
        put(&broker, "strangers", "", &format!("invented.{at}"), "a");
    }
    put(&broker, "strangers", "", &"x".repeat(5_000), "a");
    broker.wait_until(|view| view.depth("strangers") == 0).await;
    running.settled().await;
    for at in 0..1_000 {
        let sent = running.publisher().to_queue(format!("invented.{at}")).send_raw("text/plain", "a").await;
        assert!(sent.is_err());
    }
    let text = scrape(&running).await;
    let series = |name: &str, label: &str| {
        text.lines().filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(label)).count()
    };
    assert_eq!(series("acemq_consume_total", "queue=\"strangers\""), 101);
    assert!(series("acemq_publish_total", "unroutable") <= 202, "{}", series("acemq_publish_total", "unroutable"));
    assert!(text.contains("acemq_consume_total{queue=\"strangers\",message_type=\"other\",outcome=\"acked\"} 901"));
    let _ = running.close().await;
}
