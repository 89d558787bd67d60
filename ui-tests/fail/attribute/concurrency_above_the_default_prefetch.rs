// says: `concurrency` must not exceed `prefetch` (20 unless set), since a handler without a delivery has nothing to do: raise `prefetch` as well
use acemq::{Raw, consumer};

#[consumer(queue = "orders", concurrency = 21)]
async fn handle(_: Raw) {}

fn main() {}
