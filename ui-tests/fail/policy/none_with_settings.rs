// says: `none` takes no settings: write `retry = none`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = none(3))]
async fn handle(_: Raw) {}

fn main() {}
