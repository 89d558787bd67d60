// says: a wait in the broker must be whole seconds: choose a delay in seconds, or keep it in the consumer with a longer `wait_in_broker_from`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = exponential(9, "1s", "45500ms"))]
async fn handle(_: Raw) {}

fn main() {}
