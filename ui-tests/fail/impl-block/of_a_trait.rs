// says: `#[consumers]` goes on an `impl` without a trait: let a method there call the one of the trait
use acemq::{Raw, consumers};

struct Shop;

trait Sells {
    async fn handle(&self, _: Raw);
}

#[consumers]
impl Sells for Shop {
    #[consumer(queue = "orders")]
    async fn handle(&self, _: Raw) {}
}

fn main() {}
