// says: a consumer needs a queue: `#[consumer(queue = "orders.placed")]`
// says: expected an option: `queue`, `retry`, `retry_delay`, `idempotent`, `prefetch`, `concurrency`, `timeout`, `declare`, `bind`, `rungs`, `codec`, `blocking`, `name` or `crate`
use acemq::{Raw, consumer};

#[consumer("orders")]
async fn handle(_: Raw) {}

fn main() {}
