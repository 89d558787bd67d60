//! The consumers of the cases; each test names those that it runs.

use std::time::Duration;

use acemq::{Ack, Context, Message, Publisher, State, consumer};
use serde::{Deserialize, Serialize};

use super::lab::Log;

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Order {
    pub id: u32,
}

#[consumer(queue = "accepts", declare = quorum)]
pub(crate) async fn accepts(order: Order, State(log): State<Log>, context: Context) {
    log.note(&order.id.to_string(), context.attempt());
}

#[consumer(queue = "fails.twice", declare = classic, retry = fixed(3, "50ms"))]
pub(crate) async fn fails_twice(order: Order, State(log): State<Log>, context: Context) -> Result<(), String> {
    log.note(&order.id.to_string(), context.attempt());
    if context.attempt() < 3 { Err(format!("attempt {}", context.attempt())) } else { Ok(()) }
}

#[consumer(queue = "waits.in.broker", declare = quorum, retry = fixed(2, "1s", wait_in_broker_from = "1s"))]
pub(crate) async fn waits_in_broker(order: Order, State(log): State<Log>, context: Context) -> Result<(), String> {
    log.note(&order.id.to_string(), context.attempt());
    if context.attempt() == 1 { Err("not yet".to_owned()) } else { Ok(()) }
}

#[consumer(queue = "exhausts", declare = quorum, retry = fixed(3, "20ms"))]
pub(crate) async fn exhausts(_: Order, State(log): State<Log>, context: Context) -> Result<(), String> {
    log.note("call", context.attempt());
    Err(format!("failure {}", context.attempt()))
}

#[derive(Debug, thiserror::Error)]
#[error("the order cannot be priced")]
pub(crate) struct Unpriced(#[source] acemq::Fatal);

#[consumer(queue = "sets.aside", declare = quorum, retry = fixed(5, "20ms"))]
pub(crate) async fn sets_aside(order: Order, State(log): State<Log>, context: Context) -> Result<Ack, Unpriced> {
    log.note(&order.id.to_string(), context.attempt());
    match order.id {
        1 => Err(Unpriced(acemq::fatal("no such product"))),
        2 => Ok(Ack::dead_letter("not ours")),
        _ => Ok(Ack::park("a person has to look")),
    }
}

#[consumer(queue = "releases", declare = quorum)]
pub(crate) async fn releases(_: Order, State(log): State<Log>, context: Context) -> Ack {
    if log.note("call", context.attempt()) == 0 { Ack::release() } else { Ack::accept() }
}

#[consumer(queue = "endless", declare = quorum, retry_delay = "20ms")]
pub(crate) async fn endless(_: Order, State(log): State<Log>, context: Context) -> Result<(), String> {
    log.note("call", context.attempt());
    if context.attempt() < 6 { Err("again".to_owned()) } else { Ok(()) }
}

#[consumer(queue = "ages", declare = quorum, retry = fixed(9, "20ms", give_up_after = "1h"))]
pub(crate) async fn ages(_: Order, State(log): State<Log>, context: Context) -> Result<(), String> {
    log.note("call", context.attempt());
    Err("no".to_owned())
}

#[consumer(queue = "panics", declare = quorum, retry = fixed(2, "20ms"))]
pub(crate) async fn panics(order: Order, State(log): State<Log>, context: Context) {
    log.note("call", context.attempt());
    assert_ne!(order.id, 13, "thirteen is unlucky");
}

#[consumer(queue = "is.slow", declare = quorum, retry = fixed(2, "20ms"), timeout = "50ms")]
pub(crate) async fn is_slow(_: Order, State(log): State<Log>, context: Context) {
    log.note("call", context.attempt());
    std::future::pending::<()>().await;
}

#[consumer(queue = "bound", declare = quorum, bind = ("acemq.dlx", "made.up.key"))]
pub(crate) async fn bound(message: Message<Order>, State(log): State<Log>) {
    log.note(message.envelope.kind(), message.envelope.attempt());
}

#[consumer(queue = "answers", declare = quorum)]
pub(crate) async fn answers(order: Order, publisher: Publisher, context: Context) -> Result<(), acemq::SendError> {
    publisher.to_queue("answered").kind("order.answered").cause(context.envelope()).send(&order).await?;
    Ok(())
}

#[consumer(queue = "holds", declare = quorum, prefetch = 10, concurrency = 1)]
pub(crate) async fn holds(order: Order, State(log): State<Log>, context: Context) {
    log.note(&order.id.to_string(), context.attempt());
    tokio::time::sleep(Duration::from_millis(300)).await;
}

#[consumer(queue = "waits.long", declare = quorum, retry = fixed(3, "20s"))]
pub(crate) async fn waits_long(_: Order, State(log): State<Log>, context: Context) -> Result<(), String> {
    log.note("call", context.attempt());
    Err("no".to_owned())
}

#[consumer(queue = "mixed", declare = quorum, prefetch = 200, retry = fixed(3, "5ms"))]
pub(crate) async fn mixed(order: Order, State(log): State<Log>, context: Context) -> Result<Ack, String> {
    log.note("call", context.attempt());
    match order.id % 10 {
        0 => Ok(Ack::dead_letter("zero")),
        1 => Ok(Ack::park("one")),
        2 => Err("always".to_owned()),
        3 if context.attempt() == 1 => Err("once".to_owned()),
        _ => Ok(Ack::accept()),
    }
}
