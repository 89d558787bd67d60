// says: `Vec<u8>` cannot be a key
use acemq::consumer;

#[derive(serde::Deserialize)]
struct Order;

fn key(_: &Order) -> Vec<u8> {
    Vec::new()
}

#[consumer(queue = "orders", idempotent(key = key))]
async fn handle(_: Order) {}

fn main() {}
