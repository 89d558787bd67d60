// says: `no_id` is `run` or `park`; did you mean `park`?
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent(no_id = parc))]
async fn handle(_: Raw) {}

fn main() {}
