// says: `idempotent` is written alone or with settings, as in `idempotent(retention = "1d")`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent = true)]
async fn handle(_: Raw) {}

fn main() {}
