// says: unknown option `speed`; expected `queue`, `retry`, `retry_delay`, `idempotent`, `prefetch`, `concurrency`, `timeout`, `declare`, `bind`, `rungs`, `codec`, `blocking`, `name` or `crate`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", speed = 3)]
async fn handle(_: Raw) {}

fn main() {}
