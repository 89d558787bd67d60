// says: `acemq::Context` cannot be read from a message
// says: `Raw` is not something a consumer can ask for
use acemq::{Context, Raw, consumer};

#[consumer(queue = "orders")]
async fn handle(_: Context, _: Raw) {}

fn main() {}
