// says: mismatched types
use acemq::{Raw, consumer};

const TIMES: u32 = 3;

#[consumer(queue = "orders", retry = TIMES)]
async fn handle(_: Raw) {}

fn main() {}
