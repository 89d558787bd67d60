// says: `attempts` takes a whole number from 1 to 4294967295, as in `attempts = 5`
// says: `delay` takes a duration: a string such as "30s" or a constant of type `Duration`, as in `delay = "5s"`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed("5s", 3))]
async fn handle(_: Raw) {}

fn main() {}
