// says: `attempts` takes a whole number from 1 to 4294967295, as in `attempts = 5`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed("3", "5s"))]
async fn handle(_: Raw) {}

fn main() {}
