#![allow(non_snake_case, non_camel_case_types)]

use acemq::{Context, Raw, State, consumer};

macro_rules! consumers {
    ($($name:ident)*) => {$(
        #[consumer(queue = "orders", retry = fixed(3, "1s"), timeout = "30s", idempotent(key = key))]
        async fn $name(_: Raw, _: Context, _: State<String>) -> Result<(), String> {
            Ok(())
        }
    )*};
}

fn key(_: &Raw) -> &'static str {
    "key"
}

consumers! {
    context message error value returned refusal ack argument_2 requirements service
    invoke requires call blocking inventory
    __invoke __requires __acemq __key __QUEUE __RETRY __TIMEOUT __REGISTRATION __REGISTRATION_1
    ___invoke main_ Context_ Registration Ok_ Result_
}

#[test]
fn compiles_and_registers() {
    assert_eq!(super::registered(file!()).len(), 30);
}
