// says: `name` must not be empty; leave it out for the path of the function
use acemq::{Raw, consumer};

#[consumer(queue = "orders", name = "")]
async fn handle(_: Raw) {}

fn main() {}
