// says: unknown setting of `fixed`: `tries`; that is `attempts`, which counts the first delivery too
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(tries = 3, delay = "1s"))]
async fn handle(_: Raw) {}

fn main() {}
