// says: a value needs its name: `type = "order"`
#[derive(acemq::Message)]
#[message("order")]
struct Order;

fn main() {}
