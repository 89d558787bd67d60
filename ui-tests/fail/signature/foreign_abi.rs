// says: a consumer has no ABI of its own: remove `extern`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", blocking)]
extern "C" fn handle(_: Raw) {}

fn main() {}
