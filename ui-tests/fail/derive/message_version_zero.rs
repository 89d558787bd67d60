// says: `version` must be at least 1, which is the first version of a message
#[derive(acemq::Message)]
#[message(type = "order", version = 0)]
struct Order;

fn main() {}
