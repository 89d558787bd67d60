// says: implicit elided lifetime not allowed here
#![allow(elided_lifetimes_in_paths, mismatched_lifetime_syntaxes)]

use acemq::consumer;

#[derive(serde::Deserialize)]
struct Order<'a> {
    name: &'a str,
}

#[consumer(queue = "orders")]
async fn handle(order: Order) {
    let _ = order.name;
}

fn main() {}
