// says: unknown option `qeue`; did you mean `queue`?
use acemq::{Raw, consumer};

#[consumer(queue = "orders", qeue = "again")]
pub async fn handle(_: Raw) {}

fn main() {
    let _ = acemq::App::new().consumer::<handle>();
    drop(handle(Raw(Default::default())));
}
