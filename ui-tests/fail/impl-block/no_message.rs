// says: a consumer takes its message as the first argument; for one that does not matter, write `_: acemq::Raw`
use acemq::consumers;

struct Shop;

#[consumers]
impl Shop {
    #[consumer(queue = "orders")]
    async fn handle(&self) {}
}

fn main() {}
