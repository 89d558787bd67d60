//! What becomes of messages: one is handled, one fails twice, one is refused, one cannot be read.
//!
//! `cargo run -p acemq-examples --example orders`, on the embedded broker unless `ACEMQ_URL` names another.

use std::time::Duration;

use acemq::{App, Context, Running, consumer, engine::Totals};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OrderPlaced {
    order_id: u32,
}

#[derive(Debug, thiserror::Error)]
enum PaymentError {
    #[error("the bank does not answer")]
    BankAway,
    #[error("the card is stolen")]
    StolenCard,
}

#[consumer(queue = "example.orders.record", declare = quorum, retry = fixed(3, "200ms"))]
async fn record_order(order: OrderPlaced) {
    println!("    order {} is recorded", order.order_id);
}

#[consumer(queue = "example.orders.charge", declare = quorum, retry = exponential(5, "100ms", "1s"))]
async fn charge_order(order: OrderPlaced, context: Context) -> Result<(), PaymentError> {
    match context.attempt() {
        attempt @ 1..=2 => {
            println!("    order {}, attempt {attempt}: {}", order.order_id, PaymentError::BankAway);
            Err(PaymentError::BankAway)
        }
        attempt => {
            println!("    order {}, attempt {attempt}: charged", order.order_id);
            Ok(())
        }
    }
}

#[consumer(queue = "example.orders.verify", declare = quorum, retry = fixed(3, "200ms"))]
async fn verify_order(order: OrderPlaced) -> Result<(), acemq::Fatal> {
    println!("    order {}: {}, and no retry will change that", order.order_id, PaymentError::StolenCard);
    Err(acemq::fatal(PaymentError::StolenCard))
}

#[tokio::main]
async fn main() -> Result<acemq::Drained, Box<dyn std::error::Error>> {
    let url = if let Ok(url) = std::env::var("ACEMQ_URL") {
        println!("on the broker that ACEMQ_URL names");
        url
    } else {
        println!("on the embedded broker; set ACEMQ_URL to use RabbitMQ");
        "memory://orders".to_owned()
    };
    let running = App::new().url(url).start().await?;
    let publisher = running.publisher();
    let mut table = Vec::new();

    for (queue, order_id) in [("record", 1), ("charge", 2), ("verify", 3)] {
        let queue = format!("example.orders.{queue}");
        println!("order {order_id} goes to {queue}");
        let before = running.totals();
        publisher.to_queue(&queue).kind("order.placed").send(&OrderPlaced { order_id }).await?;
        table.push((format!("order {order_id}"), queue, outcome(&running, before).await));
    }
    let queue = "example.orders.record".to_owned();
    println!("something that is no order goes to {queue}");
    let before = running.totals();
    publisher.to_queue(&queue).kind("order.placed").send_raw("application/json", "{not json").await?;
    table.push(("no order".to_owned(), queue, outcome(&running, before).await));

    println!("\n{:<10} {:<24} what became of it", "message", "queue");
    for (message, queue, outcome) in table {
        println!("{message:<10} {queue:<24} {outcome}");
    }
    Ok(running.close().await)
}

/// Waits until one more message has come to its end, and says to which.
async fn outcome(running: &Running, before: Totals) -> String {
    let ended = |totals: Totals| totals.acked + totals.rejected + totals.dead_lettered + totals.parked;
    while ended(running.totals()) == ended(before) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A copy may come to its end before the original that it replaces is settled.
    running.settled().await;
    let now = running.totals();
    let retries = match now.retried - before.retried {
        0 => String::new(),
        retries => format!(" after {retries} retries"),
    };
    if now.acked > before.acked {
        format!("handled{retries}")
    } else if now.parked > before.parked {
        "parked as it came: it cannot be read".to_owned()
    } else {
        format!("dead-lettered{retries}, with the reason in its header")
    }
}
