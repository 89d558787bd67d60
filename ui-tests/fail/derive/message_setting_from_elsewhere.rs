// says: unknown setting of `message`: `name`; that is `type`
// says: a message needs the name of its type: `#[message(type = "order.placed")]` beside the derive
#[derive(acemq::Message)]
#[message(name = "order")]
struct Order;

fn main() {}
