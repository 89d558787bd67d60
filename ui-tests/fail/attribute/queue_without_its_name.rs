// says: a value needs its name: `queue = "orders"`
use acemq::{Raw, consumer};

#[consumer("orders")]
async fn handle(_: Raw) {}

fn main() {}
