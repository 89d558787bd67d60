// says: a retry delay must be longer than zero
#[derive(Debug, thiserror::Error, acemq::Classify)]
enum OrderError {
    #[error("busy")]
    #[retry(after = "0s")]
    Busy,
}

fn main() {}
