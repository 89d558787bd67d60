// says: `queue` takes a string, as in `queue = "orders.placed"`
use acemq::{Raw, consumer};

#[consumer(queue = 7)]
async fn handle(_: Raw) {}

fn main() {}
