// says: names that start with `amq.` belong to the broker: name a queue of your own
use acemq::{Raw, consumer};

#[consumer(queue = "amq.orders")]
async fn handle(_: Raw) {}

fn main() {}
