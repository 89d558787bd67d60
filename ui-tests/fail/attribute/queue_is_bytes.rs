// says: `queue` takes a string, as in `queue = "orders.placed"`
use acemq::{Raw, consumer};

#[consumer(queue = b"orders")]
async fn handle(_: Raw) {}

fn main() {}
