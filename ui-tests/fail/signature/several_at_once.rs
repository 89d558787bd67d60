// says: a consumer is an `async fn`: add `async` before `fn`, or `blocking` to the attribute
// says: a consumer cannot be generic: it is registered once, for one message type; write one small consumer for each type, and let them call the generic function
// says: a consumer owns its arguments, since it outlives the call that made them: take `T`
use acemq::consumer;

#[consumer(queue = "orders")]
fn handle<T: Clone>(_: &T) {}

fn main() {}
