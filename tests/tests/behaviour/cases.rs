//! The cases; each is one sentence of the contract.

use std::time::Duration;

use acemq::{
    App,
    envelope::{Properties, Table, Value, headers::Number},
    topology::{DEAD_LETTER_EXCHANGE, Declaration},
};
use bytes::Bytes;

use super::{
    consumers::{self, Order},
    lab::{Lab, Log, number, plain, text, with_headers},
};

fn order(id: u32) -> Vec<u8> {
    serde_json::to_vec(&Order { id }).unwrap()
}

fn app(log: &Log) -> App {
    App::new().state(log.clone())
}

pub(crate) async fn an_accepted_message_is_handled_once_and_gone(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::accepts>()).await;
    lab.put("accepts", order(1), plain("a")).await;
    lab.put("accepts", order(2), plain("b")).await;
    log.calls(2).await;
    running.settled().await;
    let drained = running.close().await;
    assert!(drained.finished);
    assert_eq!((drained.totals.delivered, drained.totals.acked), (2, 2));
    assert_eq!(log.attempts(), [1, 1]);
}

pub(crate) async fn a_short_wait_advances_the_attempt_and_keeps_everything_else(lab: &Lab) {
    // A last failure shows the message as it was on its last attempt.
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::exhausts>()).await;
    let foreign = Table::from([
        ("bool".to_owned(), Value::Bool(true)),
        ("i8".to_owned(), Value::I8(-8)),
        ("i16".to_owned(), Value::I16(-16)),
        ("i32".to_owned(), Value::I32(-32)),
        ("u32".to_owned(), Value::U32(32)),
        ("i64".to_owned(), Value::I64(-64)),
        ("f32".to_owned(), Value::F32(0.5)),
        ("f64".to_owned(), Value::F64(0.25)),
        ("decimal".to_owned(), Value::Decimal { scale: 2, value: 314 }),
        ("text".to_owned(), Value::from("täxt")),
        ("array".to_owned(), Value::Array(vec![Value::I32(1), Value::from("two")])),
        ("time".to_owned(), Value::Timestamp(1_700_000_000)),
        ("table".to_owned(), Value::Table(Table::from([("inner".to_owned(), Value::Bool(false))]))),
        ("bytes".to_owned(), Value::Bytes(Bytes::from_static(&[0, 255]))),
        ("void".to_owned(), Value::Void),
        ("x-acemq-unknown".to_owned(), Value::from("kept")),
        ("x-acemq-first-seen".to_owned(), Value::I64(1_700_000_000_123)),
    ]);
    let sent = Properties {
        content_type: Some("application/json".to_owned()),
        content_encoding: Some("identity".to_owned()),
        headers: foreign.clone(),
        delivery_mode: Some(1),
        priority: Some(3),
        correlation_id: Some("correlation".to_owned()),
        reply_to: Some("answers".to_owned()),
        expiration: Some("600000".to_owned()),
        message_id: Some("the-id".to_owned()),
        timestamp: Some(1_700_000_000),
        kind: Some("kind".to_owned()),
        user_id: None,
        app_id: Some("app".to_owned()),
        cluster_id: None,
    };
    lab.put("exhausts", order(7), sent.clone()).await;
    let dead = lab.take_one("exhausts.dlq").await;
    let _ = running.close().await;
    assert_eq!(log.attempts(), [1, 2, 3]);
    assert_eq!(dead.body, order(7));
    let mut headers = dead.properties.headers.clone();
    assert_eq!(headers.remove("x-acemq-attempt"), Some(Value::I32(3)));
    assert!(headers.remove("x-acemq-error").is_some());
    assert_eq!(headers, foreign);
    let expected = Properties { expiration: None, delivery_mode: Some(2), headers: Table::new(), ..sent };
    assert_eq!(Properties { headers: Table::new(), ..dead.properties }, expected);
}

pub(crate) async fn a_wait_in_the_broker_comes_back_through_its_rung(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::waits_in_broker>()).await;
    lab.put("waits.in.broker", order(1), plain("a")).await;
    let calls = log.calls(2).await;
    let waited = calls[1].at - calls[0].at;
    assert!(waited >= Duration::from_millis(990), "{waited:?}");
    assert_eq!(log.attempts(), [1, 2]);
    running.settled().await;
    let totals = running.close().await.totals;
    assert_eq!((totals.retried, totals.acked), (1, 1));
}

pub(crate) async fn exhausted_attempts_end_in_the_dead_letter_queue_with_the_last_error(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::exhausts>()).await;
    lab.put("exhausts", order(1), plain("a")).await;
    let dead = lab.take_one("exhausts.dlq").await;
    assert_eq!(text(&dead, "x-acemq-error"), Some("attempts exhausted after 3 deliveries: failure 3"));
    assert_eq!(number(&dead, "x-acemq-attempt"), Number::Whole(3));
    running.settled().await;
    let totals = running.close().await.totals;
    assert_eq!((totals.delivered, totals.retried, totals.dead_lettered), (3, 2, 1));
}

pub(crate) async fn a_fatal_error_a_rejection_and_a_park_are_told_apart(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::sets_aside>()).await;
    for (id, queue, reason) in [
        (1, "sets.aside.dlq", "fatal: the order cannot be priced: no such product"),
        (2, "sets.aside.dlq", "rejected by the handler: not ours"),
        (3, "sets.aside.parked", "parked by the handler: a person has to look"),
    ] {
        lab.put("sets.aside", order(id), plain("a")).await;
        let aside = lab.take_one(queue).await;
        assert_eq!(text(&aside, "x-acemq-error"), Some(reason));
        assert_eq!((aside.body, aside.properties.delivery_mode), (Bytes::from(order(id)), Some(2)));
    }
    assert_eq!(log.attempts(), [1, 1, 1]);
    running.settled().await;
    let totals = running.close().await.totals;
    assert_eq!((totals.rejected, totals.parked), (2, 1));
}

pub(crate) async fn a_released_message_comes_back_with_its_attempt(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::releases>()).await;
    lab.put("releases", order(1), plain("a")).await;
    let calls = log.calls(2).await;
    assert_eq!(log.attempts(), [1, 1]);
    assert!(calls[1].at - calls[0].at >= Duration::from_secs(4), "it came back at full speed");
    running.settled().await;
    let totals = running.close().await.totals;
    assert_eq!((totals.released, totals.acked), (1, 1));
}

pub(crate) async fn an_undecodable_body_is_parked_byte_for_byte_and_never_handled(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::accepts>()).await;
    let deep = "[".repeat(100_000);
    let bodies: [&[u8]; 7] =
        [b"", b"{", b"\xff\xfe\x00", b"\xef\xbb\xbf{\"id\":1}", b"{\"id\":-1}", b"{\"id\":1e999}", deep.as_bytes()];
    for body in bodies {
        lab.put("accepts", body.to_vec(), plain("a")).await;
        let parked = lab.take_one("accepts.parked").await;
        assert_eq!(parked.body, body);
        assert!(text(&parked, "x-acemq-error").unwrap().starts_with("undecodable: the body cannot be read: "));
        assert_eq!(parked.properties.content_type.as_deref(), Some("application/json"));
    }
    let xml = Properties { content_type: Some("application/xml".to_owned()), ..plain("a") };
    lab.put("accepts", order(1), xml).await;
    let parked = lab.take_one("accepts.parked").await;
    assert!(text(&parked, "x-acemq-error").unwrap().contains("content type `application/xml`"));
    lab.put("accepts", order(1), plain("a")).await;
    log.calls(1).await;
    running.settled().await;
    let totals = running.close().await.totals;
    assert_eq!((totals.parked, totals.acked), (8, 1));
}

pub(crate) async fn without_a_policy_a_message_is_tried_on_and_on(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::endless>()).await;
    lab.put("endless", order(1), plain("a")).await;
    log.calls(6).await;
    assert_eq!(log.attempts(), [1, 2, 3, 4, 5, 6]);
    running.settled().await;
    assert_eq!(running.close().await.totals.acked, 1);
}

pub(crate) async fn an_old_message_is_given_up(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::ages>()).await;
    let old = Table::from([("x-acemq-first-seen".to_owned(), Value::from("1700000000000"))]);
    lab.put("ages", order(1), with_headers("a", old)).await;
    let dead = lab.take_one("ages.dlq").await;
    assert_eq!(text(&dead, "x-acemq-error"), Some("too old, past 1h: no"));
    assert_eq!(text(&dead, "x-acemq-first-seen"), Some("1700000000000"));
    assert_eq!(log.attempts(), [1]);
    let totals = running.close().await.totals;
    assert_eq!(totals.dead_lettered, 1);
}

pub(crate) async fn a_panic_is_a_failed_attempt(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::panics>()).await;
    lab.put("panics", order(13), plain("a")).await;
    let dead = lab.take_one("panics.dlq").await;
    let error = text(&dead, "x-acemq-error").unwrap();
    assert!(error.starts_with("attempts exhausted after 2 deliveries: the handler panicked: "), "{error}");
    assert!(error.contains("thirteen is unlucky"), "{error}");
    lab.put("panics", order(1), plain("b")).await;
    assert_eq!(log.calls(3).await.len(), 3);
    running.settled().await;
    assert_eq!(running.close().await.totals.acked, 1);
}

pub(crate) async fn a_handler_over_its_timeout_has_failed(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::is_slow>()).await;
    lab.put("is.slow", order(1), plain("a")).await;
    let dead = lab.take_one("is.slow.dlq").await;
    assert_eq!(
        text(&dead, "x-acemq-error"),
        Some("attempts exhausted after 2 deliveries: the handler took longer than 50ms")
    );
    assert_eq!(log.attempts(), [1, 2]);
    assert!(running.close().await.finished);
}

pub(crate) async fn a_message_of_a_stranger_is_a_first_attempt(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::exhausts>()).await;
    lab.put("exhausts", order(5), Properties::default()).await;
    let dead = lab.take_one("exhausts.dlq").await;
    assert_eq!(log.attempts(), [1, 2, 3]);
    assert_eq!(dead.properties.message_id, None);
    assert_eq!(dead.properties.content_type, None);
    let names: Vec<&str> = dead.properties.headers.keys().map(String::as_str).collect();
    assert_eq!(names, ["x-acemq-attempt", "x-acemq-error", "x-acemq-first-seen"]);
    let _ = running.close().await;
}

pub(crate) async fn an_attempt_is_understood_in_every_type(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::accepts>()).await;
    let attempts = [
        Value::I8(4),
        Value::I16(4),
        Value::I32(4),
        Value::U32(4),
        Value::I64(4),
        Value::F32(4.0),
        Value::F64(4.0),
        Value::from("4"),
        Value::Bytes(Bytes::from_static(b"4")),
    ];
    let count = attempts.len();
    for value in attempts {
        let headers = Table::from([("x-acemq-attempt".to_owned(), value)]);
        lab.put("accepts", order(1), with_headers("a", headers)).await;
    }
    log.calls(count).await;
    assert_eq!(log.attempts(), vec![4; count]);
    let _ = running.close().await;
}

pub(crate) async fn a_senseless_attempt_is_parked(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::accepts>()).await;
    for value in [Value::I32(-1), Value::I64(i64::MIN), Value::I64(1 << 40), Value::from("99999999999999999999")] {
        let headers = Table::from([("x-acemq-attempt".to_owned(), value.clone())]);
        lab.put("accepts", order(1), with_headers("a", headers)).await;
        let parked = lab.take_one("accepts.parked").await;
        assert_eq!(parked.properties.headers["x-acemq-attempt"], value);
        assert!(text(&parked, "x-acemq-error").unwrap().starts_with("poison: header `x-acemq-attempt` holds "));
        assert_eq!(parked.body, order(1));
    }
    assert_eq!(log.attempts(), [] as [u32; 0]);
    let _ = running.close().await;
}

pub(crate) async fn a_bound_queue_receives_what_its_exchange_routes(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::bound>()).await;
    let receipt = running.publisher().to(DEAD_LETTER_EXCHANGE, "made.up.key").send(&Order { id: 1 }).await.unwrap();
    assert_eq!(receipt.id.len(), 36);
    assert_eq!(log.calls(1).await[0].what, "made.up.key");
    let _ = running.close().await;
}

pub(crate) async fn handlers_publish_and_carry_the_correlation_on(lab: &Lab) {
    lab.declare(Declaration::Queue { name: "answered".to_owned(), arguments: Table::new() }).await;
    let running = lab.start(App::new().origin("shop@here").consumer::<consumers::answers>()).await;
    let headers = Table::from([("x-acemq-correlation".to_owned(), Value::from("flow"))]);
    lab.put("answers", order(1), with_headers("cause", headers)).await;
    let answer = lab.take_one("answered").await;
    assert_eq!(text(&answer, "x-acemq-correlation"), Some("flow"));
    assert_eq!(text(&answer, "x-acemq-causation"), Some("cause"));
    assert_eq!(text(&answer, "x-acemq-type"), Some("order.answered"));
    assert_eq!(text(&answer, "x-acemq-origin"), Some("shop@here"));
    assert_eq!(text(&answer, "x-acemq-id"), answer.properties.message_id.as_deref());
    assert_eq!(answer.properties.content_type.as_deref(), Some("application/json"));
    assert_eq!(answer.properties.delivery_mode, Some(2));
    let _ = running.close().await;
}

pub(crate) async fn an_unroutable_publish_is_an_error(lab: &Lab) {
    let running = lab.start(app(&Log::new()).consumer::<consumers::accepts>()).await;
    let publisher = running.publisher();
    let unroutable = publisher.to_queue("no.such.queue").send(&Order { id: 1 }).await.unwrap_err();
    assert!(matches!(unroutable, acemq::SendError::Unroutable { .. }), "{unroutable}");
    publisher.to_queue("no.such.queue").optional().send(&Order { id: 1 }).await.unwrap();
    let missing = publisher.to("no.such.exchange", "key").send(&Order { id: 1 }).await.unwrap_err();
    assert!(missing.to_string().contains("`no.such.exchange`"), "{missing}");
    let reserved = publisher.to_queue("accepts").header("x-acemq-id", "mine").send(&Order { id: 1 }).await.unwrap_err();
    assert!(matches!(reserved, acemq::SendError::ReservedHeader { .. }), "{reserved}");
    publisher.to_queue("accepts").send(&Order { id: 1 }).await.unwrap();
    let _ = running.close().await;
}

pub(crate) async fn a_paused_consumer_holds_and_resumes(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::accepts>()).await;
    running.pause_consuming();
    for id in 0..5 {
        lab.put("accepts", order(id), plain("a")).await;
    }
    acemq_tests::wait::eventually(super::lab::SOON, "five held deliveries", async || {
        if running.held() == 5 { Ok(()) } else { Err(running.held()) }
    })
    .await;
    assert_eq!((running.in_flight(), log.attempts().len()), (0, 0));
    running.resume_consuming();
    log.calls(5).await;
    running.settled().await;
    assert_eq!(running.held(), 0);
    assert_eq!(running.close().await.totals.acked, 5);
}

pub(crate) async fn a_close_waits_for_running_handlers_and_gives_the_rest_back(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::holds>()).await;
    for id in 0..5 {
        lab.put("holds", order(id), plain(&id.to_string())).await;
    }
    log.calls(1).await;
    let drained = running.close().await;
    assert!(drained.finished);
    let totals = drained.totals;
    assert_eq!(totals.acked + totals.returned.total(), totals.delivered);
    assert_eq!(totals.acked, u64::try_from(log.attempts().len()).unwrap());
    let rest = lab.take("holds", 5 - log.attempts().len()).await;
    for message in rest {
        assert_eq!(number(&message, "x-acemq-attempt"), Number::Malformed, "nothing was added to it");
    }
}

pub(crate) async fn a_close_ends_held_waits_at_once_with_the_attempt_unchanged(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::waits_long>()).await;
    lab.put("waits.long", order(1), plain("a")).await;
    log.calls(1).await;
    let started = std::time::Instant::now();
    let drained = running.close().await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert!(drained.finished);
    assert_eq!((drained.totals.delivered, drained.totals.returned.total()), (1, 1));
    let back = lab.take_one("waits.long").await;
    assert!(!back.properties.headers.contains_key("x-acemq-attempt"));
}

pub(crate) async fn a_thousand_messages_with_failures_balance(lab: &Lab) {
    let log = Log::new();
    let running = lab.start(app(&log).consumer::<consumers::mixed>()).await;
    let publisher = running.publisher();
    let sent: Vec<_> = (0..1_000_u32)
        .map(|id| {
            let publication = publisher.to_queue("mixed");
            tokio::spawn(async move { publication.send(&Order { id }).await })
        })
        .collect();
    for receipt in sent {
        receipt.await.unwrap().unwrap();
    }
    // A tenth is refused at once, a tenth is parked, a tenth fails three times, and a tenth fails once.
    log.calls(1_000 + 200 + 100).await;
    lab.take("mixed.dlq", 200).await;
    lab.take("mixed.parked", 100).await;
    running.settled().await;
    let totals = running.close().await.totals;
    assert_eq!(totals.delivered, 1_300);
    assert_eq!(
        (totals.acked, totals.retried, totals.rejected, totals.parked, totals.dead_lettered),
        (700, 300, 100, 100, 100)
    );
}
