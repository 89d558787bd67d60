// says: a consumer method takes `&self`; a function without it stands outside the `impl`, with `#[acemq::consumer(…)]`
use acemq::{Raw, consumers};

struct Shop;

#[consumers]
impl Shop {
    #[consumer(queue = "orders")]
    async fn handle(_: Raw) {}
}

fn main() {}
