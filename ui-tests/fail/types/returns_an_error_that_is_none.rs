// says: a consumer cannot return `Result<(), NotAnError>`
use acemq::{Raw, consumer};

struct NotAnError;

#[consumer(queue = "orders")]
async fn handle(_: Raw) -> Result<(), NotAnError> {
    Ok(())
}

fn main() {}
