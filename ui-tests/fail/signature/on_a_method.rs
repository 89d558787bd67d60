// says: a method is registered through its `impl`: put `#[acemq::consumers]` on the block
use acemq::{Raw, consumer};

struct Shop;

impl Shop {
    #[consumer(queue = "orders")]
    async fn handle(&self, _: Raw) {}
}

fn main() {}
