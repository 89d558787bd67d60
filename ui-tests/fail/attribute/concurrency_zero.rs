// says: `concurrency` must be at least 1: no handler would ever run
use acemq::{Raw, consumer};

#[consumer(queue = "orders", concurrency = 0)]
async fn handle(_: Raw) {}

fn main() {}
