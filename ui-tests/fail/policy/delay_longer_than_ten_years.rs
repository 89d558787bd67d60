// says: a retry delay must not be longer than ten years: no broker keeps a message that long
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(3, "3651d"))]
async fn handle(_: Raw) {}

fn main() {}
