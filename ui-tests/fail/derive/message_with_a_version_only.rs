// says: a message needs the name of its type: `#[message(type = "order.placed")]` beside the derive
#[derive(acemq::Message)]
#[message(version = 2)]
struct Order;

fn main() {}
