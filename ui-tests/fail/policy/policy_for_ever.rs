// says: unknown retry policy `forever`; a consumer without `retry` tries for ever, `retry_delay` apart
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = forever)]
async fn handle(_: Raw) {}

fn main() {}
