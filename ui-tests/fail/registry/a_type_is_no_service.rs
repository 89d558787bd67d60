// says: `Shop` is not a service of consumers
use acemq::registry::Consumers;

struct Shop;

fn count<S: Consumers>() -> usize {
    S::REGISTRATIONS.len()
}

fn main() {
    count::<Shop>();
}
