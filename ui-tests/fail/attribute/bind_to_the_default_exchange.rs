// says: the default exchange takes no bindings: name another exchange, or drop the binding, since every queue is reached there by its own name
use acemq::{Raw, consumer};

#[consumer(queue = "orders", bind = ("", "orders"))]
async fn handle(_: Raw) {}

fn main() {}
