// says: `queue` is given twice
use acemq::{Raw, consumer};

#[consumer(queue = "orders", queue = "again")]
async fn handle(_: Raw) {}

fn main() {}
