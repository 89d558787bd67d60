// says: `attempts` must be at least 1: the first delivery is an attempt
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(0, "5s"))]
async fn handle(_: Raw) {}

fn main() {}
