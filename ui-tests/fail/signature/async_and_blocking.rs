// says: a `blocking` consumer is an ordinary `fn`, run off the async threads: remove `async`, or `blocking`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", blocking)]
async fn handle(_: Raw) {}

fn main() {}
