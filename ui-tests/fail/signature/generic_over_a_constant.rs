// says: a consumer cannot be generic: it is registered once, for one message type; write one small consumer for each type, and let them call the generic function
use acemq::{Raw, consumer};

#[consumer(queue = "orders")]
async fn handle<const N: usize>(_: Raw) {}

fn main() {}
