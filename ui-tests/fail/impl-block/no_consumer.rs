// says: no consumer here: mark a method with `#[consumer(queue = "…")]`
use acemq::consumers;

struct Shop;

#[consumers]
impl Shop {
    fn _helper(&self) {}
}

fn main() {}
