// says: `declare` needs a value, as in `declare = quorum`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", declare)]
async fn handle(_: Raw) {}

fn main() {}
