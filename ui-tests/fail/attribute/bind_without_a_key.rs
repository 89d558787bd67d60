// says: `bind` takes an exchange and a routing key, as in `bind = ("orders", "order.placed")`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", bind = "orders")]
async fn handle(_: Raw) {}

fn main() {}
