// says: unknown option `qeue`; did you mean `queue`?
use acemq::{Raw, consumer};

#[consumer(qeue = "orders")]
async fn handle(_: Raw) {}

fn main() {}
