// says: this duration is too long: no wait is longer than ten years
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(3, "99999999999999999999s"))]
async fn handle(_: Raw) {}

fn main() {}
