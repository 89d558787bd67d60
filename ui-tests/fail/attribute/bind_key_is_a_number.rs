// says: the exchange and the routing key are strings, as in `bind = ("orders", "order.placed")`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", bind = ("orders", 7))]
async fn handle(_: Raw) {}

fn main() {}
