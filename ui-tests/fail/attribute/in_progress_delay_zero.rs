// says: `in_progress_delay` must be longer than zero: the message would come back at once, again and again
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent(in_progress_delay = "0s"))]
async fn handle(_: Raw) {}

fn main() {}
