// says: a message needs the name of its type: `#[message(type = "order.placed")]` beside the derive
#[derive(acemq::Message)]
struct Order;

fn main() {}
