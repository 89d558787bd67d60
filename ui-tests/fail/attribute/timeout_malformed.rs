// says: not a duration: write a whole number and a unit, such as "500ms", "30s", "5m", "6h" or "1d"
use acemq::{Raw, consumer};

#[consumer(queue = "orders", timeout = "30 seconds")]
async fn handle(_: Raw) {}

fn main() {}
