// says: the queue needs a name: an empty one asks the broker to invent one
use acemq::{Raw, consumer};

#[consumer(queue = "")]
async fn handle(_: Raw) {}

fn main() {}
