// says: `blocking` takes no value: write it alone
use acemq::{Raw, consumer};

#[consumer(queue = "orders", blocking = true)]
fn handle(_: Raw) {}

fn main() {}
