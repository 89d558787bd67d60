// says: not a duration: write a whole number and a unit, such as "500ms", "30s", "5m", "6h" or "1d"
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = exponential(5, "1m", "1 hour"))]
async fn handle(_: Raw) {}

fn main() {}
