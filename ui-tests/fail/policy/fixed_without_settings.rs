// says: `fixed` needs its settings, as in `retry = fixed(5, "10s")`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed)]
async fn handle(_: Raw) {}

fn main() {}
