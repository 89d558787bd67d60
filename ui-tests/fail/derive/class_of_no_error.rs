// says: `Failed` is not an error
#[derive(Debug, acemq::Classify)]
#[fatal]
struct Failed;

fn main() {}
