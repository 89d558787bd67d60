// says: a message type is not empty: name it, as in `type = "order.placed"`
#[derive(acemq::Message)]
#[message(type = "")]
struct Order;

fn main() {}
