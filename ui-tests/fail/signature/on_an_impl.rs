// says: `#[consumer]` goes on an `async fn`; for the methods of an `impl`, use `#[acemq::consumers]` on the block
use acemq::consumer;

struct Shop;

#[consumer(queue = "orders")]
impl Shop {}

fn main() {}
