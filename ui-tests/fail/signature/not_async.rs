// says: a consumer is an `async fn`: add `async` before `fn`, or `blocking` to the attribute
use acemq::{Raw, consumer};

#[consumer(queue = "orders")]
fn handle(_: Raw) {}

fn main() {}
