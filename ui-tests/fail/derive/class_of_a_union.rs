// says: a union cannot be an error: classify a struct or an enum
#[derive(acemq::Classify)]
#[fatal]
union Failed {
    _a: u8,
}

fn main() {}
