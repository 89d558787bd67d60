// says: this name leaves no room for the queues that acemq derives from it, such as `{queue}.parked` and `{queue}.retry.160s`, in the 255 bytes of a name: shorten it
use acemq::{Raw, consumer};

const LONG: &str = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq";

#[consumer(queue = LONG, retry = fixed(3, "160s"))]
async fn handle(_: Raw) {}

fn main() {}
