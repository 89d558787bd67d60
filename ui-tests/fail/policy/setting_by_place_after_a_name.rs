// says: a value without a name stands before the named settings
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(attempts = 3, "1s", delay = "1s"))]
async fn handle(_: Raw) {}

fn main() {}
