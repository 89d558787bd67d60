// says: `#[message(…)]` is given twice
#[derive(acemq::Message)]
#[message(type = "order")]
#[message(version = 2)]
struct Order;

fn main() {}
