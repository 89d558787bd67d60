//! Health under a memory alarm, and under the loss of everything.

use std::time::{Duration, Instant};

use acemq::{App, Running, Text, consumer, health::Status};
use acemq_tests::{
    needs,
    rabbitmq::{Node, Version},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

// RabbitMQ may have a quorum queue without a leader for good if it is killed within seconds of the declaration.
#[consumer(queue = "alarmed", declare = classic, name = "alarmed")]
async fn alarmed(_: Text) {}

async fn health(running: &Running) -> (u16, serde_json::Value) {
    let mut stream = TcpStream::connect(running.actuator_address().unwrap()).await.unwrap();
    stream.write_all(b"GET /acemq-health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

async fn within_a_second(what: &str, running: &Running, look: impl Fn(u16, &serde_json::Value) -> bool) {
    let started = Instant::now();
    loop {
        let (code, json) = health(running).await;
        if look(code, &json) {
            println!("{what} after {:?}", started.elapsed());
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(1), "{what} took longer than a second: {code} {json}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_alarm_is_up_with_its_reason_and_a_lost_broker_is_degraded_until_it_is_back() {
    needs!(RabbitMq4);
    let node = Node::start(Version::V4).await;
    let app = App::new().url(node.url()).actuator("127.0.0.1:0").consumer::<alarmed>();
    let running = app.start().await.unwrap();
    assert_eq!(health(&running).await.1["status"], "UP");
    let publisher = running.publisher();
    publisher.to_queue("alarmed").send_raw("text/plain", "a").await.unwrap();

    node.block_memory().await;
    // The broker tells a connection when it publishes.
    let waiting = tokio::spawn(async move { publisher.to_queue("alarmed").send_raw("text/plain", "b").await });
    within_a_second("the reason", &running, |code, json| {
        let connection = &json["components"]["connection"];
        code == 200 && json["status"] == "UP" && connection["blockedReason"].as_str().is_some_and(|why| !why.is_empty())
    })
    .await;
    let asked = Instant::now();
    health(&running).await;
    assert!(asked.elapsed() < Duration::from_millis(500), "health asks a blocked broker: {:?}", asked.elapsed());
    node.unblock().await;
    within_a_second("its end", &running, |code, json| {
        code == 200 && json["components"]["connection"].get("blockedReason").is_none()
    })
    .await;
    // Confirmed, or given up on a machine that takes half a minute for the two commands.
    let _ = waiting.await.unwrap();

    node.delete_queue("alarmed").await;
    within_a_second("the dead consumer", &running, |code, json| {
        let consumer = &json["components"]["consumer.alarmed"];
        // It declares the queue anew, so it may be back already.
        code == 200 && (consumer["status"] == "DEGRADED" || consumer["resubscribed"] == "1")
    })
    .await;
    node.write_out().await;
    node.kill();
    within_a_second("the lost broker", &running, |code, json| code == 200 && json["status"] == "DEGRADED").await;
    node.start_again().await;
    let started = Instant::now();
    loop {
        let health = running.health().await;
        if health.status == Status::Up {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{health:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("up again {:?} after the broker", started.elapsed());
    let _ = running.close().await;
}
