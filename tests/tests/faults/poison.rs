//! A process that dies over a message, again and again: the message is set aside with a reason.

use std::time::Duration;

use acemq::{App, Raw, consumer};
use acemq_tests::{
    amqp::Client,
    process::Builder,
    rabbitmq::{self, Version},
};

const LIMIT: u32 = 3;

const URL: &str = "FAULTS_POISON_URL";

fn die_over(raw: &Raw) {
    if &*raw.0 == b"poison" {
        std::process::abort();
    }
}

#[consumer(queue = "poison.quorum", declare = quorum, prefetch = 1)]
async fn over_quorum(raw: Raw) {
    die_over(&raw);
}

#[consumer(queue = "poison.classic", declare = classic, prefetch = 1)]
async fn over_classic(raw: Raw) {
    die_over(&raw);
}

#[tokio::test]
#[ignore = "the process that dies; the tests below start it"]
async fn dies_over_poison() {
    let url = std::env::var(URL).unwrap();
    let app = App::new().url(url).crash_limit(LIMIT).consumer::<over_quorum>().consumer::<over_classic>();
    let running = app.start().await.unwrap();
    println!("consuming");
    // Until somebody kills it.
    std::future::pending::<()>().await;
    drop(running);
}

async fn ends_in_the_dead_letter_queue(version: Version, queue: &str) {
    let node = rabbitmq::shared(version).await;
    let client = Client::connect(&node.url()).await;
    let process = || Builder::test("poison::dies_over_poison").env(URL, node.url()).start();
    // Both versions have the same queues; another test of this binary does not use them.
    let mut program = process();
    program.line("consuming", Duration::from_secs(40)).await;
    client.send(queue, "poison").await;
    client.send(queue, "good").await;
    let dead_letters = format!("{queue}.dlq");
    let mut deaths = 0;
    let dead = loop {
        if let Some(dead) = client.get(&dead_letters).await {
            break dead;
        }
        if tokio::time::timeout(Duration::from_millis(100), program.ended(Duration::from_secs(60))).await.is_ok() {
            deaths += 1;
            assert!(deaths <= 2 * LIMIT, "the message killed {deaths} processes");
            program = process();
        }
    };
    let reason = dead.text_header("x-acemq-error").unwrap();
    assert!(reason.starts_with("crash loop"), "{reason}");
    assert_eq!(dead.text(), "poison");
    assert!(deaths >= LIMIT - 1, "{deaths} deaths");
    acemq_tests::eventually(Duration::from_secs(30), "the good message to be handled", async || {
        match client.ready(queue).await {
            Some(0) => Ok(()),
            other => Err(other),
        }
    })
    .await;
    assert_eq!(client.ready(&dead_letters).await, Some(0), "the good one is not set aside");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_kills_its_process_is_set_aside_on_rabbitmq_3() {
    acemq_tests::needs!(RabbitMq3);
    ends_in_the_dead_letter_queue(Version::V3, "poison.quorum").await;
    ends_in_the_dead_letter_queue(Version::V3, "poison.classic").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_kills_its_process_is_set_aside_on_rabbitmq_4() {
    acemq_tests::needs!(RabbitMq4);
    ends_in_the_dead_letter_queue(Version::V4, "poison.quorum").await;
    ends_in_the_dead_letter_queue(Version::V4, "poison.classic").await;
}
