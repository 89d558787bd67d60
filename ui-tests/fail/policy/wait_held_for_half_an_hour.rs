// says: a wait of 30 minutes or more must be spent in the broker, which gives up on a consumer that holds a delivery for so long: shorten `wait_in_broker_from`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = exponential(9, "1m", "1h", wait_in_broker_from = "0s"))]
async fn handle(_: Raw) {}

fn main() {}
