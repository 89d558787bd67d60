// says: `codec` takes the path of a type, as in `codec = acemq::envelope::Json`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", codec = "json")]
async fn handle(_: Raw) {}

fn main() {}
