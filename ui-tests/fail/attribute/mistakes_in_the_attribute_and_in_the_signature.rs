// says: `prefetch` takes a whole number from 1 to 65535, as in `prefetch = 20`
// says: a consumer is an `async fn`: add `async` before `fn`, or `blocking` to the attribute
use acemq::{Raw, consumer};

#[consumer(queue = "orders", prefetch = "many")]
fn handle(_: Raw) {}

fn main() {}
