// says: constant provided when a type was expected
async fn handle(_: acemq::Raw) {}

fn main() {
    let _ = acemq::App::new().consumer::<handle>();
}
