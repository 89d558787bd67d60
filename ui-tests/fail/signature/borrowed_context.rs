// says: a consumer owns its arguments, since it outlives the call that made them: take `acemq::Context`
use acemq::{Raw, consumer};

#[consumer(queue = "orders")]
async fn handle(_: Raw, _: &acemq::Context) {}

fn main() {}
