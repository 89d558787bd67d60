// says: mismatched types
use acemq::consumer;

#[derive(serde::Deserialize)]
struct Order;

fn key(order: &String) -> String {
    order.clone()
}

#[consumer(queue = "orders", idempotent(key = key))]
async fn handle(_: Order) {}

fn main() {}
