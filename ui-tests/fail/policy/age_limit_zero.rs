// says: `give_up_after` must be longer than zero; leave it out for no limit
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(5, "10s", give_up_after = "0s"))]
async fn handle(_: Raw) {}

fn main() {}
