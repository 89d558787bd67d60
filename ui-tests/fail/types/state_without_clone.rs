// says: `Db` cannot be the state of an application
use acemq::{Raw, State, consumer};

struct Db;

#[consumer(queue = "orders")]
async fn handle(_: Raw, _: State<Db>) {}

fn main() {}
