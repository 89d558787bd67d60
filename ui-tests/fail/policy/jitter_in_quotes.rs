// says: `jitter` takes a number from 0.0 to 1.0, as in `jitter = 0.3`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = exponential(5, "1s", "1m", jitter = "20%"))]
async fn handle(_: Raw) {}

fn main() {}
