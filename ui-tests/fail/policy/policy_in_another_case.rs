// says: unknown retry policy `Fixed`; did you mean `fixed`?
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = Fixed(5, "10s"))]
async fn handle(_: Raw) {}

fn main() {}
