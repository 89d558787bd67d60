// says: unknown retry policy `exponental`; did you mean `exponential`?
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = exponental(5, "1s", "1m"))]
async fn handle(_: Raw) {}

fn main() {}
