// says: `String` is not a codec
use acemq::consumer;

#[derive(serde::Deserialize)]
struct Order;

#[consumer(queue = "orders", codec = String)]
async fn handle(_: Order) {}

fn main() {}
