//! The cases of waits in the broker; each is one sentence of the contract.

use std::time::Duration;

use acemq::{
    Ack, App, Context, State, consumer,
    envelope::{Table, Value},
};

use super::{
    consumers::Order,
    lab::{Lab, Log, plain, with_headers},
};

#[consumer(queue = "waits.mixed", declare = quorum, retry = exponential(6, "1s", "16s", wait_in_broker_from = "1s"))]
async fn waits_mixed(order: Order, State(log): State<Log>) -> Result<Ack, String> {
    match log.note(&order.id.to_string(), 0) {
        0 => Err("not yet".to_owned()),
        _ => Ok(Ack::accept()),
    }
}

/// Before a new release, and after it.
mod releases {
    use super::{Context, Log, Order, State, consumer};

    #[consumer(queue = "waits.changed", declare = quorum, retry = fixed(3, "1s", wait_in_broker_from = "1s"))]
    pub(super) async fn before(_: Order, State(log): State<Log>, context: Context) -> Result<(), String> {
        log.note("before", context.attempt());
        Err("not yet".to_owned())
    }

    #[consumer(queue = "waits.changed", declare = quorum, retry = fixed(3, "2s", wait_in_broker_from = "1s"))]
    pub(super) async fn after(_: Order, State(log): State<Log>, context: Context) -> Result<(), String> {
        log.note("after", context.attempt());
        Err("not yet".to_owned())
    }
}

fn order(id: u32) -> Vec<u8> {
    serde_json::to_vec(&Order { id }).unwrap()
}

pub(crate) async fn a_short_wait_in_the_broker_is_not_held_up_by_a_long_one(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(App::new().state(log.clone()).consumer::<waits_mixed>()).await;
    // Its next wait is the longest, 16 s; that of the other one is the shortest.
    let fifth = Table::from([("x-acemq-attempt".to_owned(), Value::I32(5))]);
    lab.put("waits.mixed", order(16), with_headers("a", fifth)).await;
    log.calls(1).await;
    lab.put("waits.mixed", order(1), plain("b")).await;
    let seen: Vec<String> = log.calls(3).await.into_iter().map(|seen| seen.what).collect();
    assert_eq!(seen, ["16", "1", "1"]);
    let _ = running.close().await;
}

pub(crate) async fn another_delay_is_another_queue_and_what_waits_in_the_old_one_comes_home(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(App::new().state(log.clone()).consumer::<releases::before>()).await;
    lab.put("waits.changed", order(1), plain("a")).await;
    log.calls(1).await;
    running.settled().await;
    let _ = running.close().await;
    let running = lab.start(App::new().state(log.clone()).consumer::<releases::after>()).await;
    let dead = lab.take_one("waits.changed.dlq").await;
    assert_eq!(dead.body, order(1));
    let calls = log.calls(3).await;
    let seen: Vec<(&str, u32)> = calls.iter().map(|seen| (seen.what.as_str(), seen.attempt)).collect();
    assert_eq!(seen, [("before", 1), ("after", 2), ("after", 3)]);
    assert!(calls[2].at - calls[1].at >= Duration::from_millis(1_990));
    let _ = running.close().await;
}
