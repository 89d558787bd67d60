// says: unknown option `prefetc`; did you mean `prefetch`?
// says: unknown retry policy `exponental`; did you mean `exponential`?
// says: `timeout` needs a value, as in `timeout = "30s"`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", prefetc = 10, retry = exponental(attempts = 3), timeout)]
async fn handle(_: Raw) {}

fn main() {}
