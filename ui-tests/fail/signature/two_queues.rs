// says: one function consumes one queue: for a second queue write a second function
use acemq::{Raw, consumer};

#[consumer(queue = "orders")]
#[consumer(queue = "invoices")]
async fn handle(_: Raw) {}

fn main() {}
