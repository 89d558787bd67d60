// says: `scope` is `queue` or `shared`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent(scope = global))]
async fn handle(_: Raw) {}

fn main() {}
