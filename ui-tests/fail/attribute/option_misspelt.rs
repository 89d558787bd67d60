// says: unknown option `time_out`; did you mean `timeout`?
use acemq::{Raw, consumer};

#[consumer(queue = "orders", time_out = "30s")]
async fn handle(_: Raw) {}

fn main() {}
