use acemq::{Raw, State, consumer, consumers};

#[consumer(queue = "orders")]
async fn r#move(r#type: Raw, State(r#in): State<String>) {
    let _ = (r#type, r#in);
}

#[consumer(r#queue = "returns", prefetch = 3)]
async fn plain(_: Raw) {}

struct r#Shop;

#[consumers]
impl Shop {
    #[consumer(queue = "sales")]
    async fn r#match(&self, _: Raw) {}
}

#[test]
fn compiles_and_registers() {
    let names: Vec<&str> = super::registered(file!()).iter().map(|found| found.name).collect();
    assert!(names[0].ends_with("::move"), "{names:?}");
    assert!(names[2].ends_with("::Shop::match"), "{names:?}");
}
