// says: `in_progress_delay` (5s unless set) must be shorter than `claim` (5m unless set): a message that waits for a claim should be looked at before the claim ends
use acemq::{Raw, consumer};

#[consumer(queue = "orders", idempotent(claim = "3s"))]
async fn handle(_: Raw) {}

fn main() {}
