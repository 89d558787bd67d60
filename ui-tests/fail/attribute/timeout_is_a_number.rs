// says: `timeout` takes a duration: a string such as "30s" or a constant of type `Duration`, as in `timeout = "30s"`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", timeout = 30)]
async fn handle(_: Raw) {}

fn main() {}
