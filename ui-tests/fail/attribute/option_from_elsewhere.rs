// says: unknown option `routing_key`; a binding names it, as in `bind = ("orders", "order.placed")`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", routing_key = "order.placed")]
async fn handle(_: Raw) {}

fn main() {}
