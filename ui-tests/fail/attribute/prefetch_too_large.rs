// says: `prefetch` takes a whole number from 1 to 65535, as in `prefetch = 20`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", prefetch = 100_000)]
async fn handle(_: Raw) {}

fn main() {}
