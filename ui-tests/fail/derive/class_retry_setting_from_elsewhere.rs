// says: unknown setting of `retry`: `delay`; that is `after`
#[derive(Debug, thiserror::Error, acemq::Classify)]
enum OrderError {
    #[error("busy")]
    #[retry(delay = "30s")]
    Busy,
}

fn main() {}
