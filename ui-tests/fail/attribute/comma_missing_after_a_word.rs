// says: expected `,` before this
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent prefetch = 3)]
async fn handle(_: Raw) {}

fn main() {}
