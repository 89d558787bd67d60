// says: `store` must not be empty; leave it out for the application's default store
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent(store = ""))]
async fn handle(_: Raw) {}

fn main() {}
