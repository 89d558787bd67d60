//! The health of an application over HTTP.

use std::time::{Duration, Instant};

use acemq::{
    App, Context, Text, consumer,
    health::{Component, HealthContributor},
    transport::memory::Memory,
};

use super::client::{get, start};

#[consumer(queue = "healthy", declare = quorum, name = "healthy", concurrency = 1)]
async fn healthy(_: Text, context: Context) {
    context.cancelled().await;
}

struct Part(&'static str);

impl HealthContributor for Part {
    fn name(&self) -> &'static str {
        self.0
    }

    async fn check(&self) -> Component {
        match self.0 {
            "disk" => Component::up().with("free", "12 GB").with("status", "no detail takes its place"),
            "cache" => Component::down("gone"),
            "hangs" => std::future::pending().await,
            _ => panic!("a check that panics"),
        }
    }
}

fn put(broker: &Memory) {
    let properties = acemq::envelope::Properties {
        content_type: Some("text/plain".to_owned()),
        message_id: Some("the-id".to_owned()),
        ..Default::default()
    };
    let (exchange, routing_key) = (String::new(), "healthy".to_owned());
    let message = acemq::transport::Outgoing { exchange, routing_key, mandatory: true, properties, body: "a".into() };
    let _ = broker.publish(message).unwrap();
}

async fn eventually(look: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !look().await {
        assert!(started.elapsed() < Duration::from_secs(1), "it took longer than a second");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn health_is_the_json_of_the_contract_with_what_is_going_on() {
    let broker = Memory::private();
    let app = App::new().consumer::<healthy>().health(Part("disk")).drain_timeout(Duration::ZERO);
    let running = start(app, &broker).await;
    put(&broker);
    put(&broker);
    eventually(async || running.in_flight() == 1 && running.held() == 1).await;
    running.pause_consuming();
    running.pause_publishing();
    let answer = get(&running, "/acemq-health").await;
    let mut json = answer.json();
    let consumer = json["components"]["consumer.healthy"].as_object_mut().unwrap();
    for varying in ["lastDeliverySecondsAgo", "oldestHandlerSeconds"] {
        assert!(consumer.remove(varying).unwrap().as_str().unwrap().parse::<f64>().unwrap() < 5.0, "{varying}");
    }
    let expected = serde_json::json!({
        "status": "UP",
        "inFlight": 1,
        "components": {
            "connection": {
                "status": "UP", "open": "true", "blocked": "false", "transport": "memory", "inFlight": "1", "held": "1",
                "consuming": "paused", "publishing": "paused", "consumingGeneration": "1", "publishingGeneration": "1",
            },
            "consumer.healthy": {
                "status": "UP", "queue": "healthy", "subscribed": "true", "inFlight": "1", "held": "1", "waiting": "0",
                "resubscribed": "0", "oldestHandlerMessage": "the-id",
            },
            "disk": { "status": "UP", "free": "12 GB" },
        },
    });
    assert_eq!((answer.code, json), (200, expected));
    let _ = running.close().await;
}

#[tokio::test]
async fn blocked_is_up_with_the_reason_and_the_reason_goes_with_the_alarm() {
    let broker = Memory::private();
    let running = start(App::new().consumer::<healthy>(), &broker).await;
    broker.block("low on memory");
    let connection = async || get(&running, "/acemq-health").await.json()["components"]["connection"].clone();
    eventually(async || connection().await["blockedReason"] == "low on memory").await;
    let answer = get(&running, "/acemq-health").await;
    let connection_now = connection().await;
    assert_eq!(
        (answer.code, &answer.json()["status"], &connection_now["blocked"]),
        (200, &"UP".into(), &"true".into())
    );
    broker.unblock();
    eventually(async || connection().await.get("blockedReason").is_none()).await;
    let _ = running.close().await;
}

#[tokio::test]
async fn a_dead_consumer_is_degraded_within_a_second_and_up_after_its_recovery() {
    let broker = Memory::private();
    let running = start(App::new().consumer::<healthy>(), &broker).await;
    let status = async || get(&running, "/acemq-health").await.json()["status"].clone();
    assert_eq!(status().await, "UP");
    broker.refuse_connections(true);
    broker.cut();
    eventually(async || status().await == "DEGRADED").await;
    assert_eq!(get(&running, "/acemq-health").await.code, 200);
    broker.refuse_connections(false);
    let started = Instant::now();
    while status().await != "UP" {
        assert!(started.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let json = get(&running, "/acemq-health").await.json();
    assert_eq!(json["components"]["consumer.healthy"]["resubscribed"], "1");
    assert_eq!(json["components"]["connection"]["consumingGeneration"], "2");
    let _ = running.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_stays_closed_is_down_after_the_grace() {
    let broker = Memory::private();
    let running = App::new().transport(broker.clone()).consumer::<healthy>().start().await.unwrap();
    broker.refuse_connections(true);
    broker.cut();
    tokio::time::sleep(acemq::health::RECONNECT_GRACE.saturating_sub(Duration::from_millis(10))).await;
    assert_eq!(running.health().await.status, acemq::health::Status::Degraded);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(running.health().await.status, acemq::health::Status::Down);
    broker.refuse_connections(false);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(running.health().await.status, acemq::health::Status::Up);
    let _ = running.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_answers_within_three_seconds_with_everything_broken_and_names_what_is() {
    let broker = Memory::private();
    let app = App::new().consumer::<healthy>().health(Part("hangs")).health(Part("panics")).health(Part("cache"));
    let running = start(app, &broker).await;
    broker.block("low on memory");
    broker.refuse_connections(true);
    broker.cut();
    let started = Instant::now();
    let answer = get(&running, "/acemq-health").await;
    let took = started.elapsed();
    println!("health with everything broken took {took:?}");
    assert!(took < Duration::from_secs(3), "{took:?}");
    let json = answer.json();
    assert_eq!((answer.code, &json["status"]), (503, &"DOWN".into()));
    let of = |name: &str| (json["components"][name]["status"].clone(), json["components"][name]["reason"].clone());
    assert_eq!(of("hangs"), ("DEGRADED".into(), "the check took longer than 2.8s".into()));
    assert_eq!(of("panics"), ("DEGRADED".into(), "the check panicked: a check that panics".into()));
    assert_eq!(of("cache"), ("DOWN".into(), "gone".into()));
    assert_eq!(json["components"]["consumer.healthy"]["status"], "DEGRADED");
    let _ = running.close().await;
}

#[tokio::test]
async fn health_is_served_while_the_application_drains_with_the_account_so_far() {
    let broker = Memory::private();
    let running = start(App::new().consumer::<healthy>().drain_timeout(Duration::from_mins(1)), &broker).await;
    put(&broker);
    eventually(async || running.in_flight() == 1).await;
    running.begin_close();
    eventually(async || get(&running, "/acemq-health").await.body.contains("shutdown")).await;
    let answer = get(&running, "/acemq-health").await;
    let account = answer.json()["components"]["shutdown"]["account"].clone();
    assert_eq!(account, "handlers still run; 1 delivered, 1 still in handlers");
    assert_eq!((answer.code, &answer.json()["status"]), (200, &"UP".into()));
    running.hurry();
    let _ = running.close().await;
}

#[tokio::test]
async fn two_parts_of_one_name_are_an_error() {
    for parts in [["disk", "disk"], ["disk", "connection"], ["consumer.healthy", "disk"]] {
        let app = parts.into_iter().fold(App::new().consumer::<healthy>(), |app, part| app.health(Part(part)));
        let error = app.transport(Memory::private()).start().await.unwrap_err().to_string();
        assert!(error.contains("a part of the health is named"), "{error}");
    }
}
