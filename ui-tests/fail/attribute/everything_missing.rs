// says: a consumer needs a queue: `#[consumer(queue = "orders.placed")]`
use acemq::{Raw, consumer};

#[consumer]
async fn handle(_: Raw) {}

fn main() {}
