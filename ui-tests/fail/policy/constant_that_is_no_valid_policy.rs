// says: `attempts` must be at least 1: the first delivery is an attempt
use acemq::{Raw, consumer};

const POLICY: acemq::RetryPolicy = acemq::RetryPolicy::fixed(0, std::time::Duration::from_secs(5));

#[consumer(queue = "orders", retry = POLICY)]
async fn handle(_: Raw) {}

fn main() {}
