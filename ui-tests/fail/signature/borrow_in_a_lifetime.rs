// says: a consumer owns its arguments, since it outlives the call that made them: let the type own its data, such as `String` in place of `&str`
use acemq::consumer;

#[derive(serde::Deserialize)]
struct Order<'a> {
    _name: &'a str,
}

#[consumer(queue = "orders")]
async fn handle(_: Order<'_>) {}

fn main() {}
