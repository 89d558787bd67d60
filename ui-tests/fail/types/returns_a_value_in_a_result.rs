// says: a consumer cannot return `Result<u32, std::io::Error>`
use acemq::{Raw, consumer};

#[consumer(queue = "orders")]
async fn handle(_: Raw) -> Result<u32, std::io::Error> {
    Ok(3)
}

fn main() {}
