use acemq::{
    Ack, Message, MessageType, consumer,
    envelope::Value,
    handler::{Park, Scope},
    registry::{Consumer, Registration},
};

use super::{context, delivered};

#[derive(serde::Deserialize, acemq::Message)]
#[message(type = "order.placed", version = 2)]
struct OrderPlaced {}

#[consumer(queue = "typed")]
async fn typed(_: OrderPlaced) {}

#[consumer(queue = "wrapped")]
async fn wrapped(_: Message<OrderPlaced>) {}

#[derive(serde::Deserialize)]
struct Plain {}

#[consumer(queue = "untyped")]
async fn untyped(_: Plain) {}

async fn with(consumer: &Registration, headers: &[(&str, Value)]) -> Ack {
    (consumer.invoke)(context(delivered("{}", headers), Scope::default())).await
}

fn kind(kind: &str) -> (&'static str, Value) {
    ("x-acemq-type", Value::from(kind))
}

fn version(version: i32) -> (&'static str, Value) {
    ("x-acemq-version", Value::I32(version))
}

#[test]
fn the_default_version_is_the_first() {
    #[derive(acemq::Message)]
    #[message(type = "first")]
    struct First;
    assert_eq!((First::TYPE, First::VERSION), ("first", 1));
    assert_eq!((OrderPlaced::TYPE, OrderPlaced::VERSION), ("order.placed", 2));
}

#[tokio::test]
async fn a_message_of_another_type_or_a_later_version_is_parked() {
    for consumer in [typed::REGISTRATION, wrapped::REGISTRATION] {
        for (headers, reason) in [
            (vec![], None),
            (vec![kind("order.placed"), version(2)], None),
            (vec![kind("order.placed"), version(1)], None),
            (vec![kind(""), version(1)], None),
            (
                vec![kind("order.paid"), version(2)],
                Some("the message is of type `order.paid`, and this consumer takes `order.placed`"),
            ),
            (
                vec![kind("order.placed"), version(3)],
                Some("the message is version 3 of `order.placed`, and this consumer knows version 2 at most"),
            ),
        ] {
            let expected =
                reason.map_or(Ack::Accept, |reason| Ack::Park { reason: reason.to_owned(), cause: Park::Undecodable });
            assert_eq!(with(&consumer, &headers).await, expected, "{headers:?}");
        }
    }
}

#[tokio::test]
async fn a_message_without_a_type_of_its_own_is_decoded_whatever_the_envelope_states() {
    assert_eq!(with(&untyped::REGISTRATION, &[kind("order.paid"), version(9)]).await, Ack::Accept);
}
