#![allow(dead_code)]

use acemq::consumer;

struct Result;
struct Option;
struct Ok;
struct Err;
struct Some;
struct None;
struct Context;
struct Box;
struct String;
struct Vec;
struct Duration;
struct Registration;
struct Consumer;
struct RetryPolicy;

#[derive(serde::Deserialize)]
struct Message {
    number: u64,
}

impl Message {
    fn key(&self) -> u64 {
        self.number
    }
}

mod std {}
mod core {}

#[consumer(
    queue = "orders",
    retry = fixed(3, "1s", give_up_after = "1m"),
    timeout = "30s",
    idempotent(key = Message::key),
    prefetch = 3,
    declare = quorum,
)]
async fn handle(message: Message, context: acemq::Context) -> ::std::result::Result<(), acemq::Fatal> {
    let _ = (message, context);
    ::std::result::Result::Ok(())
}

#[test]
fn compiles_and_registers() {
    assert_eq!(super::registered(file!()).len(), 1);
}
