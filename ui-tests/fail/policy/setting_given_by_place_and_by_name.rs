// says: `attempts` is given twice: the first values are `attempts`, `delay`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(3, "1s", attempts = 4))]
async fn handle(_: Raw) {}

fn main() {}
