// says: `timeout` must be longer than zero; leave it out for no limit
use acemq::{Raw, consumer};

#[consumer(queue = "orders", timeout = "0s")]
async fn handle(_: Raw) {}

fn main() {}
