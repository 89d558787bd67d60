// says: unknown setting of `message`: `name`; that is `type`
#[derive(acemq::Message)]
#[message(name = "order")]
struct Order;

fn main() {}
