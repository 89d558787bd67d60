// says: mismatched types
use acemq::{Raw, consumer};

const LIMIT: &str = "30s";

#[consumer(queue = "orders", timeout = LIMIT)]
async fn handle(_: Raw) {}

fn main() {}
