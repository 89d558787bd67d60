// says: a consumer cannot return `u32`
use acemq::{Raw, consumer};

#[consumer(queue = "orders")]
async fn handle(_: Raw) -> u32 {
    3
}

fn main() {}
