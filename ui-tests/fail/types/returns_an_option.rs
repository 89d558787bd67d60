// says: a consumer cannot return `Option<()>`
use acemq::{Raw, consumer};

#[consumer(queue = "orders")]
async fn handle(_: Raw) -> Option<()> {
    None
}

fn main() {}
