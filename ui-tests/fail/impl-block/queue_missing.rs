// says: a consumer needs a queue: `#[consumer(queue = "orders.placed")]`
use acemq::{Raw, consumers};

struct Shop;

#[consumers]
impl Shop {
    #[consumer(prefetch = 3)]
    async fn handle(&self, _: Raw) {}
}

fn main() {}
