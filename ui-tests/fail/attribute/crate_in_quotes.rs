// says: `crate` takes a path, as in `crate = my_crate::acemq`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", crate = "acemq")]
async fn handle(_: Raw) {}

fn main() {}
