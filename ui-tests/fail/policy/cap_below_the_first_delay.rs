// says: `max` must not be shorter than `initial`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = exponential(5, "1m", "1s"))]
async fn handle(_: Raw) {}

fn main() {}
