// says: a classified error cannot be generic: it is looked for by its type; classify the type behind it
#[derive(Debug, thiserror::Error, acemq::Classify)]
#[error("failed")]
#[fatal]
struct Failed<T: std::fmt::Debug>(T);

fn main() {}
