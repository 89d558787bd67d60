// says: `OrderPlaced` cannot be read from a message
use acemq::consumer;

struct OrderPlaced;

#[consumer(queue = "orders")]
async fn handle(_: OrderPlaced) {}

fn main() {}
