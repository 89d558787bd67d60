// says: `#[message]` takes settings, as in `#[message(type = "order.placed", version = 2)]`
#[derive(acemq::Message)]
#[message]
struct Order;

fn main() {}
