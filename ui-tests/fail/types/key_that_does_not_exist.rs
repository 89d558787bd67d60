// says: cannot find function `order_id` in this scope
use acemq::consumer;

#[derive(serde::Deserialize)]
struct Order;

#[consumer(queue = "orders", idempotent(key = order_id))]
async fn handle(_: Order) {}

fn main() {}
