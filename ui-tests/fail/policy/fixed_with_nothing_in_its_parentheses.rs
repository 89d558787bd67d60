// says: `fixed` needs `attempts` and `delay`, as in `fixed(attempts = 5, delay = "5s")`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed())]
async fn handle(_: Raw) {}

fn main() {}
