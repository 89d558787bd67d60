// says: after the first 2 a setting of `fixed` has a name: `jitter`, `give_up_after` or `wait_in_broker_from`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(3, "1s", "1m"))]
async fn handle(_: Raw) {}

fn main() {}
