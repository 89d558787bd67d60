// says: a consumer owns its arguments, since it outlives the call that made them: take `String`
use acemq::consumer;

#[consumer(queue = "orders")]
async fn handle(_: &str) {}

fn main() {}
