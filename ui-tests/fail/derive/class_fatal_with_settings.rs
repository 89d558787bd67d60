// says: `#[fatal]` takes no settings: write it alone
#[derive(Debug, thiserror::Error, acemq::Classify)]
enum OrderError {
    #[error("odd")]
    #[fatal(always)]
    Odd,
}

fn main() {}
