// says: a consumer borrows nothing, since it outlives the call that made its arguments: remove the lifetime
use acemq::{Raw, consumer};

#[consumer(queue = "orders")]
async fn handle<'a>(_: Raw) {}

fn main() {}
