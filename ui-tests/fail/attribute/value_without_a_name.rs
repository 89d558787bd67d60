// says: expected an option: `queue`, `retry`, `retry_delay`, `idempotent`, `prefetch`, `concurrency`, `timeout`, `declare`, `bind`, `rungs`, `codec`, `blocking`, `name` or `crate`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", 7)]
async fn handle(_: Raw) {}

fn main() {}
