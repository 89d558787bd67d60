//! Publishing: every message is confirmed, and one that no queue takes is an error.
//!
//! `cargo run -p acemq-examples --example publish`, on the embedded broker unless `ACEMQ_URL` names another.

use acemq::{App, Message, SendError, consumer};

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Invoice {
    number: u32,
    total_cents: u64,
}

#[consumer(queue = "publish.invoices", declare = classic)]
async fn print_invoice(invoice: Message<Invoice>) {
    println!("received invoice {} as {}", invoice.number, invoice.envelope.id().unwrap_or("a stranger"));
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("ACEMQ_URL").unwrap_or_else(|_| "memory://publish".to_owned());
    let running = App::new().url(url).start().await?;
    let publisher = running.publisher();

    for number in 1..=3 {
        let invoice = Invoice { number, total_cents: 1_200 };
        let receipt = publisher.to_queue("publish.invoices").kind("invoice.issued").send(&invoice).await?;
        println!("sent invoice {number} as {}, confirmed", receipt.id);
    }
    match publisher.to_queue("publish.nowhere").send(&Invoice { number: 4, total_cents: 0 }).await {
        Err(SendError::Unroutable { routing_key, .. }) => println!("no queue is called {routing_key}"),
        other => println!("unexpected: {other:?}"),
    }
    while running.totals().acked < 3 {
        tokio::task::yield_now().await;
    }
    println!("{}", running.close().await);
    Ok(())
}
