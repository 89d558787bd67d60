// says: `version` takes a whole number from 1 to 4294967295, as in `version = 2`
#[derive(acemq::Message)]
#[message(type = "order", version = "2")]
struct Order;

fn main() {}
