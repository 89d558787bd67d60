// says: a consumer owns its arguments, since it outlives the call that made them: take `acemq::Raw`
use acemq::consumer;

#[consumer(queue = "orders")]
async fn handle(_: &[u8]) {}

fn main() {}
