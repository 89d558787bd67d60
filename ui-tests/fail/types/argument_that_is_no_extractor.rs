// says: `Db` is not something a consumer can ask for
use acemq::{Raw, consumer};

struct Db;

#[consumer(queue = "orders")]
async fn handle(_: Raw, _: Db) {}

fn main() {}
