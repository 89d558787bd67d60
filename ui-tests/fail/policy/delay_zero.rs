// says: a retry delay must be longer than zero
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(3, "0s"))]
async fn handle(_: Raw) {}

fn main() {}
