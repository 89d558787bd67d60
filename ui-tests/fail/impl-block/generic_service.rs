// says: the service of a consumer cannot be generic: it is registered once, for one type
use acemq::{Raw, consumers};

struct Shop<T>(T);

#[consumers]
impl<T> Shop<T> {
    #[consumer(queue = "orders")]
    async fn handle(&self, _: Raw) {}
}

fn main() {}
