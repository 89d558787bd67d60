// says: `key` takes the path of a function, as in `key = OrderPlaced::order_id`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent(key = "order_id"))]
async fn handle(_: Raw) {}

fn main() {}
