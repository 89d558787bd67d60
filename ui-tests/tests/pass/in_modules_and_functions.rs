use acemq::registry::Consumer;

mod shop {
    pub(crate) mod orders {
        use super::super::Order;

        #[acemq::consumer(queue = "nested")]
        pub(in super::super::shop) async fn placed(_: Order) {}

        #[acemq::consumer(queue = "seen")]
        pub(crate) async fn seen(_: Order) {}
    }

    pub(crate) fn name() -> &'static str {
        use acemq::registry::Consumer;
        orders::placed::REGISTRATION.name
    }
}

#[derive(serde::Deserialize)]
struct Order;

#[test]
fn compiles_and_registers() {
    #[derive(serde::Deserialize)]
    struct Local;

    #[acemq::consumer(queue = "local")]
    async fn local(_: Local) {}

    struct Shop;

    #[acemq::consumers]
    impl Shop {
        #[consumer(queue = "local-service")]
        async fn handle(&self, _: Local) {}
    }

    let _ = Shop;
    assert!(shop::name().ends_with("shop::orders::placed"));
    assert_eq!(shop::orders::seen::REGISTRATION.spec.queue, "seen");
    assert_eq!(local::REGISTRATION.spec.queue, "local");
    assert_eq!(super::registered(file!()).len(), 4);
}
