// says: `#[consumers]` goes on an `impl` block with `#[consumer(…)]` methods
use acemq::{Raw, consumers};

#[consumers]
async fn handle(_: Raw) {}

fn main() {}
