// says: `#[retry]` is written alone or with a delay, as in `#[retry(after = "30s")]`
#[derive(Debug, thiserror::Error, acemq::Classify)]
enum OrderError {
    #[error("busy")]
    #[retry = "30s"]
    Busy,
}

fn main() {}
