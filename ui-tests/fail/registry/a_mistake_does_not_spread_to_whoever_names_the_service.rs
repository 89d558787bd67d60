// says: unknown option `qeue`; did you mean `queue`?
use acemq::{Raw, consumers, registry::Consumers};

struct Shop;

#[consumers]
impl Shop {
    #[consumer(queue = "orders", qeue = "again")]
    async fn handle(&self, _: Raw) {}
}

fn count<S: Consumers>() -> usize {
    S::REGISTRATIONS.len()
}

fn main() {
    count::<Shop>();
}
