// says: `queue` needs a value, as in `queue = "orders.placed"`
use acemq::{Raw, consumer};

#[consumer(queue =)]
async fn handle(_: Raw) {}

fn main() {}
