// says: `Handle` is not a consumer
use acemq::registry::Consumer;

struct Handle;

fn name<C: Consumer>() -> &'static str {
    C::REGISTRATION.name
}

fn main() {
    name::<Handle>();
}
