// says: `concurrency` must not exceed `prefetch` (20 unless set), since a handler without a delivery has nothing to do: raise `prefetch` as well
use acemq::{Raw, consumer};

#[consumer(queue = "orders", prefetch = 5, concurrency = 10)]
async fn handle(_: Raw) {}

fn main() {}
