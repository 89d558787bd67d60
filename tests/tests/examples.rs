//! The examples do what their documentation says, on the embedded broker and on RabbitMQ.

use std::time::Duration;

use acemq_tests::{
    on_each_rabbitmq,
    process::Builder,
    rabbitmq::{Node, vhost},
};

const SOON: Duration = Duration::from_mins(1);

const TABLE: [&str; 5] = [
    "message    queue                    what became of it",
    "order 1    example.orders.record    handled",
    "order 2    example.orders.charge    handled after 2 retries",
    "order 3    example.orders.verify    dead-lettered, with the reason in its header",
    "no order   example.orders.record    parked as it came: it cannot be read",
];

async fn orders(url: Option<&str>) {
    let mut program = Builder::example("orders");
    if let Some(url) = url {
        program = program.env("ACEMQ_URL", url);
    }
    let mut program = program.start();
    assert_eq!(program.exit_code(SOON).await, Some(0), "{:#?}", program.lines());
    let lines = program.lines();
    assert_eq!(lines[lines.len() - TABLE.len()..], TABLE, "{lines:#?}");
}

/// Ends the service with a signal, and expects its exit code to say that nothing was left behind.
async fn quickstart(url: &str) {
    let mut program = Builder::example("quickstart").env("ACEMQ_URL", url).env("RUST_LOG", "info").start();
    program.line("found a consumer", SOON).await;
    program.terminate();
    assert_eq!(program.exit_code(SOON).await, Some(0), "{:#?}", program.lines());
}

async fn publish(url: &str) {
    let mut program = Builder::example("publish").env("ACEMQ_URL", url).start();
    assert_eq!(program.exit_code(SOON).await, Some(0), "{:#?}", program.lines());
    let lines = program.lines();
    let has = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!((has("sent invoice"), has("received invoice"), has("no queue is called publish.nowhere")), (3, 3, 1));
}

async fn idempotent(url: &str) {
    let mut program = Builder::example("idempotent").env("ACEMQ_URL", url).start();
    assert_eq!(program.exit_code(SOON).await, Some(0), "{:#?}", program.lines());
    let lines = program.lines();
    assert!(lines.iter().any(|line| line.starts_with("handled 1 time, recognised 2 times")), "{lines:#?}");
    assert_eq!(lines.last().map(String::as_str), Some("Ada has 500 cents"), "{lines:#?}");
}

#[tokio::test]
async fn idempotent_makes_one_deposit_on_the_embedded_broker() {
    idempotent("memory://idempotent").await;
}

#[tokio::test]
async fn orders_shows_its_table_on_the_embedded_broker() {
    orders(None).await;
}

#[tokio::test]
async fn quickstart_ends_with_success_on_a_signal() {
    quickstart("memory://quickstart").await;
}

#[tokio::test]
async fn publish_shows_receipts_on_the_embedded_broker() {
    publish("memory://publish").await;
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_an_error_with_a_code() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("amqp://someone:s3cret@127.0.0.1:{port}");
    let mut program = Builder::example("quickstart").env("ACEMQ_URL", url).start();
    assert_eq!(program.exit_code(Duration::from_secs(15)).await, Some(1));
    let text = program.lines().join("\n");
    assert!(text.contains("no broker answers at") && !text.contains("s3cret"), "{text}");
}

on_each_rabbitmq! {
    async fn every_example_does_on_rabbitmq_what_it_does_without(node: &'static Node) {
        let url = node.url_for("guest", "guest", &vhost(node).await);
        orders(Some(&url)).await;
        // A second run finds the queues of the first, and its dead letters.
        orders(Some(&url)).await;
        publish(&url).await;
        idempotent(&url).await;
        quickstart(&url).await;
    }
}
