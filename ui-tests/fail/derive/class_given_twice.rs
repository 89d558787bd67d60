// says: an error is one of `#[fatal]`, `#[retry]` and `#[park]`, not two
#[derive(Debug, thiserror::Error, acemq::Classify)]
enum OrderError {
    #[error("odd")]
    #[fatal]
    #[park]
    Odd,
}

fn main() {}
