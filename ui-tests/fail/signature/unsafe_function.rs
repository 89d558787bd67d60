// says: a consumer cannot be `unsafe`: acemq calls it and can promise nothing
use acemq::{Raw, consumer};

#[consumer(queue = "orders")]
async unsafe fn handle(_: Raw) {}

fn main() {}
