// says: `#[consumer]` goes on an `async fn`
use acemq::consumer;

#[consumer(queue = "orders")]
struct Handler;

fn main() {}
