// says: `retention` must be longer than zero: a duplicate would never be recognised
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent(retention = "0s"))]
async fn handle(_: Raw) {}

fn main() {}
