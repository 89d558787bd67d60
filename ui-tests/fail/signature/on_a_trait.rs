// says: `#[consumer]` goes on an `async fn`; a trait has no body to run
use acemq::consumer;

#[consumer(queue = "orders")]
trait Handler {}

fn main() {}
