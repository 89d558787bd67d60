//! The shortest service: one annotated function, and `acemq::run`.
//!
//! `ACEMQ_URL=memory://shop cargo run -p acemq-examples --example quickstart`, or the URL of a RabbitMQ. Ctrl-C ends it.

use acemq::consumer;

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrderPlaced {
    order_id: String,
}

#[consumer(queue = "orders.placed", declare = quorum, retry = exponential(5, "1s", "1m"))]
async fn record_order(order: OrderPlaced) {
    println!("recorded {}", order.order_id);
}

#[tokio::main]
async fn main() -> Result<acemq::Drained, acemq::Error> {
    tracing_subscriber::fmt::init();
    acemq::run().await
}
