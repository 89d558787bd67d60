// says: unknown setting of `idempotent`: `ttl`; that is `retention`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent(ttl = "1d"))]
async fn handle(_: Raw) {}

fn main() {}
