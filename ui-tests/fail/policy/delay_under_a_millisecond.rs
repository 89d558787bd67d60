// says: a retry delay must be at least 1ms
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(3, std::time::Duration::from_micros(500)))]
async fn handle(_: Raw) {}

fn main() {}
