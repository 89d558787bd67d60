// says: a consumer method takes `&self`: one service answers many messages at once
use acemq::{Raw, consumers};

struct Shop;

#[consumers]
impl Shop {
    #[consumer(queue = "orders")]
    async fn handle(self, _: Raw) {}
}

fn main() {}
