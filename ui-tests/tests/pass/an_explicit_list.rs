use acemq::{
    App, Raw, consumer, consumers,
    registry::{Consumers, Registration},
};

#[consumer(queue = "orders")]
pub async fn orders(_: Raw) {}

struct Shop;

#[consumers]
impl Shop {
    #[consumer(queue = "sales")]
    async fn sell(&self, _: Raw) {}

    #[consumer(queue = "returns")]
    async fn take_back(&self, _: Raw) {}
}

#[test]
fn compiles_and_registers() {
    let _ = (App::new().consumer::<orders>(), Shop);
    let queues: Vec<&str> = Shop::REGISTRATIONS.iter().map(|found: &Registration| found.spec.queue).collect();
    assert_eq!(queues, ["sales", "returns"]);
}
