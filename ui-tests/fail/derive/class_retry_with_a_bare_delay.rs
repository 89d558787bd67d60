// says: expected a setting of `retry`: `after`
#[derive(Debug, thiserror::Error, acemq::Classify)]
enum OrderError {
    #[error("busy")]
    #[retry("30s")]
    Busy,
}

fn main() {}
