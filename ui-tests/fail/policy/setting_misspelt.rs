// says: unknown setting of `fixed`: `dealy`; did you mean `delay`?
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(3, "1s", dealy = "5s"))]
async fn handle(_: Raw) {}

fn main() {}
