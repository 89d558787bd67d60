// says: unknown option `speed`; expected `queue`, `retry`, `retry_delay`, `idempotent`, `prefetch`, `concurrency`, `timeout`, `declare`, `bind`, `rungs`, `codec`, `blocking`, `name` or `crate`
// says: the queue needs a name: an empty one asks the broker to invent one
// says: `prefetch` must be at least 1: zero means no limit at all to the broker
use acemq::{Raw, consumer};

#[consumer(queue = "", prefetch = 0, speed = 3)]
async fn handle(_: Raw) {}

fn main() {}
