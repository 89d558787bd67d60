// says: a value needs its name: `after = "30s"`
#[derive(Debug, thiserror::Error, acemq::Classify)]
enum OrderError {
    #[error("busy")]
    #[retry("30s")]
    Busy,
}

fn main() {}
