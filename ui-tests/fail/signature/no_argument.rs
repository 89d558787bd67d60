// says: a consumer takes its message as the first argument; for one that does not matter, write `_: acemq::Raw`
use acemq::consumer;

#[consumer(queue = "orders")]
async fn handle() {}

fn main() {}
