// says: `#[consumers]` takes no options: give them to each `#[consumer]`
use acemq::{Raw, consumers};

struct Shop;

#[consumers(prefetch = 3)]
impl Shop {
    #[consumer(queue = "orders")]
    async fn handle(&self, _: Raw) {}
}

fn main() {}
