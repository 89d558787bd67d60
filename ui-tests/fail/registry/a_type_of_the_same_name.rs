// says: the name `handle` is defined multiple times
use acemq::{Raw, consumer};

#[allow(non_camel_case_types)]
struct handle {}

#[consumer(queue = "orders")]
async fn handle(_: Raw) {}

fn main() {}
