// says: mismatched types
use acemq::{Raw, consumer};

const QUEUE: u8 = 7;

#[consumer(queue = QUEUE)]
async fn handle(_: Raw) {}

fn main() {}
