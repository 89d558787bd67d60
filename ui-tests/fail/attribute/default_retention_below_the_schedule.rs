// says: `retention` (1d unless set) is shorter than all retries together: a handled message would be forgotten while a copy may still wait; lengthen it, or shorten the schedule with `give_up_after`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(4, "12h"), idempotent)]
async fn handle(_: Raw) {}

fn main() {}
