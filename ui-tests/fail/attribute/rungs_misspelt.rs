// says: `rungs` is `quorum` or `classic`; did you mean `quorum`?
use acemq::{Raw, consumer};

#[consumer(queue = "orders", rungs = qorum)]
async fn handle(_: Raw) {}

fn main() {}
