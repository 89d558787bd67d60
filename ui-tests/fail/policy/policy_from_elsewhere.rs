// says: unknown retry policy `linear`; expected `none`, `fixed(5, "10s")`, `exponential(5, "1s", "1m")` or a constant of type `RetryPolicy`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = linear(5, "10s"))]
async fn handle(_: Raw) {}

fn main() {}
