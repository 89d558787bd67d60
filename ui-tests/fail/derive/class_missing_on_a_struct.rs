// says: say what this error means: `#[fatal]`, `#[park]` or `#[retry(after = "30s")]` on the type
#[derive(Debug, thiserror::Error, acemq::Classify)]
#[error("failed")]
struct Failed;

fn main() {}
