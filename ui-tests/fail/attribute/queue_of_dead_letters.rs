// says: names that end in `.dlq`, `.parked` or `.retry.` and a delay are declared by acemq itself: name the queue that they belong to
use acemq::{Raw, consumer};

#[consumer(queue = "orders.dlq")]
async fn handle(_: Raw) {}

fn main() {}
