// says: unknown retry policy `never`; for no retry write `retry = none`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = never)]
async fn handle(_: Raw) {}

fn main() {}
