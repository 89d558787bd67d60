// says: `jitter` must lie between 0.0 and 1.0
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = exponential(5, "1s", "1m", jitter = 20))]
async fn handle(_: Raw) {}

fn main() {}
