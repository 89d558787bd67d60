// says: cannot find type `OrderPlaced` in this scope
use acemq::consumer;

#[consumer(queue = "orders")]
async fn handle(_: OrderPlaced) {}

fn main() {}
