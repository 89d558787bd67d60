// says: `exponential` needs `attempts`, `initial` and `max`, as in `exponential(attempts = 5, initial = "1s", max = "1m")`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = exponential(jitter = 0.1))]
async fn handle(_: Raw) {}

fn main() {}
