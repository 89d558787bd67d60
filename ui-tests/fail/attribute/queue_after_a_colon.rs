// says: expected `=` after `queue`, as in `queue = "orders.placed"`
use acemq::{Raw, consumer};

#[consumer(queue: "orders")]
async fn handle(_: Raw) {}

fn main() {}
