// says: a retry delay must not be longer than ten years: no broker keeps a message that long
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = exponential(200, "1h", "4000d"))]
async fn handle(_: Raw) {}

fn main() {}
