// says: unknown option `give_up_after`; it is a setting of the policy, as in `retry = exponential(5, "1s", "1m", give_up_after = "6h")`
use acemq::{Raw, consumer};

#[consumer(queue = "orders", retry = fixed(5, "10s"), give_up_after = "6h")]
async fn handle(_: Raw) {}

fn main() {}
