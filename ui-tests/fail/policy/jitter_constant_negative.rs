// says: `jitter` must lie between 0.0 and 1.0
use acemq::{Raw, consumer};

const JITTER: f64 = -0.1;

#[consumer(queue = "orders", retry = exponential(5, "1s", "1m", jitter = JITTER))]
async fn handle(_: Raw) {}

fn main() {}
