// says: `declare` is `quorum` or `classic`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", declare = stream)]
async fn handle(_: Raw) {}

fn main() {}
