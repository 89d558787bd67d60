#![no_implicit_prelude]

#[derive(::serde::Deserialize)]
struct Order {
    number: u64,
}

impl Order {
    fn key(&self) -> u64 {
        self.number
    }
}

#[::acemq::consumer(
    queue = "orders",
    retry = exponential(5, "1s", "1m", jitter = 0.1, give_up_after = "6h"),
    idempotent(key = Order::key, claim = "1m"),
    timeout = "30s",
    bind = ("orders", "order.placed"),
)]
async fn handle(_: Order, _: ::acemq::Context) -> ::std::result::Result<(), ::std::string::String> {
    ::std::result::Result::Ok(())
}

#[::acemq::consumer(queue = "files", blocking)]
fn store(_: ::acemq::Raw) {}

struct Shop;

#[::acemq::consumers]
impl Shop {
    #[consumer(queue = "returns")]
    async fn take_back(&self, _: ::acemq::Raw, _: ::acemq::Context) {}
}

#[derive(::acemq::Message)]
#[message(type = "order", version = 2)]
struct Typed;

#[derive(::std::fmt::Debug, ::thiserror::Error, ::acemq::Classify)]
enum Failed {
    #[error("busy")]
    #[retry(after = "30s")]
    Busy,
    #[error("wrapped")]
    Wrapped(#[source] ::std::io::Error),
}

#[::core::prelude::v1::test]
fn compiles_and_registers() {
    let _ = (Shop, Typed, Failed::Busy, Failed::Wrapped);
    ::std::assert_eq!(super::registered(::std::file!()).len(), 3);
}
