#![forbid(unsafe_code)]
#![deny(warnings)]

#[acemq::consumer(queue = "orders", idempotent)]
async fn handle(_: acemq::Raw) {}

struct Shop;

#[acemq::consumers]
impl Shop {
    #[consumer(queue = "returns")]
    async fn take_back(&self, _: acemq::Raw) {}
}

#[derive(Debug, thiserror::Error, acemq::Classify)]
#[error("failed")]
#[fatal]
struct Failed;

#[test]
fn compiles_and_registers() {
    let _ = (Shop, Failed);
    assert_eq!(super::registered(file!()).len(), 2);
}
