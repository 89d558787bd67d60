// says: name the type: acemq chooses how to make an argument by its type
use acemq::consumer;

#[consumer(queue = "orders")]
async fn handle(_: impl Clone) {}

fn main() {}
