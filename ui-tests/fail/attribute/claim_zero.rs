// says: `claim` must be longer than zero: it would end before the handler starts
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent(claim = "0s"))]
async fn handle(_: Raw) {}

fn main() {}
