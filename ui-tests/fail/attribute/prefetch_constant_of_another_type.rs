// says: mismatched types
use acemq::{Raw, consumer};

const PREFETCH: usize = 10;

#[consumer(queue = "orders", prefetch = PREFETCH)]
async fn handle(_: Raw) {}

fn main() {}
