// says: a consumer needs a queue: `#[consumer(queue = "orders.placed")]`
use acemq::{Raw, consumer};

#[consumer(prefetch = 10)]
async fn handle(_: Raw) {}

fn main() {}
