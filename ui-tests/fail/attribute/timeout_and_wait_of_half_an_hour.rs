// says: `timeout` and the longest wait in the consumer together must stay under 30 minutes, after which the broker gives up on the consumer: shorten one, or shorten `wait_in_broker_from`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", timeout = "20m", retry = fixed(3, "15m", wait_in_broker_from = "20m"))]
async fn handle(_: Raw) {}

fn main() {}
