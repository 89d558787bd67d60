// says: the queue needs a name: an empty one asks the broker to invent one
use acemq::{Raw, consumer};

mod names {
    pub const ORDERS: &str = "";
}

#[consumer(queue = names::ORDERS)]
async fn handle(_: Raw) {}

fn main() {}
