// says: `Shop` cannot be a service of consumers
use std::rc::Rc;

use acemq::{Raw, consumers};

struct Shop {
    _counter: Rc<u8>,
}

#[consumers]
impl Shop {
    #[consumer(queue = "orders")]
    async fn handle(&self, _: Raw) {}
}

fn main() {}
