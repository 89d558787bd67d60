// says: `Invoice` is not something a consumer can ask for
use acemq::consumer;

#[derive(serde::Deserialize)]
struct Order;

#[derive(serde::Deserialize)]
struct Invoice;

#[consumer(queue = "orders")]
async fn handle(_: Order, _: Invoice) {}

fn main() {}
