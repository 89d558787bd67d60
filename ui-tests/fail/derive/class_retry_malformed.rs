// says: not a duration: write a whole number and a unit, such as "500ms", "30s", "5m", "6h" or "1d"
#[derive(Debug, thiserror::Error, acemq::Classify)]
enum OrderError {
    #[error("busy")]
    #[retry(after = "half a minute")]
    Busy,
}

fn main() {}
