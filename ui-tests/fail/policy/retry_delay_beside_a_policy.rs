// says: `retry_delay` is for a consumer without `retry`: give the delay to the policy, as in `retry = fixed(5, "10s")`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(5, "10s"), retry_delay = "5s")]
async fn handle(_: Raw) {}

fn main() {}
