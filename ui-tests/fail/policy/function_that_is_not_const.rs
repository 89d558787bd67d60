// says: cannot call non-const function `policy` in constants
use acemq::{Raw, consumer};

fn policy() -> acemq::RetryPolicy {
    acemq::RetryPolicy::none()
}

#[consumer(queue = "orders", retry = policy())]
async fn handle(_: Raw) {}

fn main() {}
