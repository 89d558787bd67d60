// says: `give_up_after` ends before the first retry: make it longer than the first delay
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(5, "10s", give_up_after = "10s"))]
async fn handle(_: Raw) {}

fn main() {}
