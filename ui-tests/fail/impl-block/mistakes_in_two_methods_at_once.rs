// says: unknown option `prefetc`; did you mean `prefetch`?
// says: a consumer is an `async fn`: add `async` before `fn`, or `blocking` to the attribute
use acemq::{Raw, consumers};

struct Shop;

#[consumers]
impl Shop {
    #[consumer(queue = "orders", prefetc = 3)]
    async fn placed(&self, _: Raw) {}

    #[consumer(queue = "returns")]
    fn returned(&self, _: Raw) {}
}

fn main() {}
