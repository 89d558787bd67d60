// says: a version is at least 1
#[derive(acemq::Message)]
#[message(type = "order", version = 0)]
struct Order;

fn main() {}
