// says: write `declare = quorum`, without the quotes
use acemq::{Raw, consumer};

#[consumer(queue = "orders", declare = "quorum")]
async fn handle(_: Raw) {}

fn main() {}
