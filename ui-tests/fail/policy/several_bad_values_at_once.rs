// says: `attempts` must be at least 1: the first delivery is an attempt
// says: a retry delay must be longer than zero
// says: not a duration: write a whole number and a unit, such as "500ms", "30s", "5m", "6h" or "1d"
// says: `jitter` must lie between 0.0 and 1.0
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = exponential(attempts = 0, initial = "0s", max = "1 minute", jitter = -0.1))]
async fn handle(_: Raw) {}

fn main() {}
