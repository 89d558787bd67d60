// says: `claim` needs a value, as in `claim = "5m"`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent(claim))]
async fn handle(_: Raw) {}

fn main() {}
