// says: unknown setting of `idempotent`: `retension`; did you mean `retention`?
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent(retension = "1d"))]
async fn handle(_: Raw) {}

fn main() {}
