// says: unknown setting of `message`: `verson`; did you mean `version`?
#[derive(acemq::Message)]
#[message(type = "order", verson = 2)]
struct Order;

fn main() {}
