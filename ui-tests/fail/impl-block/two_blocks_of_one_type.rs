// says: conflicting implementations of trait `Consumers` for type `Shop`
use acemq::{Raw, consumers};

struct Shop;

#[consumers]
impl Shop {
    #[consumer(queue = "orders")]
    async fn placed(&self, _: Raw) {}
}

#[consumers]
impl Shop {
    #[consumer(queue = "returns")]
    async fn returned(&self, _: Raw) {}
}

fn main() {}
