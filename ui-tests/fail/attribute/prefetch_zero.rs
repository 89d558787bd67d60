// says: `prefetch` must be at least 1: zero means no limit at all to the broker
use acemq::{Raw, consumer};

#[consumer(queue = "orders", prefetch = 0)]
async fn handle(_: Raw) {}

fn main() {}
