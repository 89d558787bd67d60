// says: a consumer is no test: write a test that calls the function
use acemq::{Raw, consumer};

#[consumer(queue = "orders")]
#[test]
async fn handle(_: Raw) {}

fn main() {}
