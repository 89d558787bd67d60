// says: `timeout` must be shorter than 30 minutes: the broker gives up on a consumer that holds a delivery for so long
use acemq::{Raw, consumer};

#[consumer(queue = "orders", timeout = "30m")]
async fn handle(_: Raw) {}

fn main() {}
