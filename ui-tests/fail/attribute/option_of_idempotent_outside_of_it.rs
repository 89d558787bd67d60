// says: unknown option `claim`; it is a setting of `idempotent`, as in `idempotent(retention = "1d", claim = "5m")`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent, claim = "5m")]
async fn handle(_: Raw) {}

fn main() {}
