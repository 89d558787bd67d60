// says: struct `handle` is private
mod orders {
    #[acemq::consumer(queue = "orders")]
    async fn handle(_: acemq::Raw) {}
}

fn main() {
    let _ = acemq::App::new().consumer::<orders::handle>();
}
