//! The hop: a message is moved by a copy that is confirmed and routed, and only then is the original acknowledged.

use std::time::Duration;

use acemq::{
    Ack,
    envelope::{Table, Value},
    topology::Declaration,
    transport::memory::Memory,
};
use tokio::time::Instant;

use super::{
    consumers,
    scene::{Scene, Script, app, attempt, headers, put, text},
};

#[tokio::test(start_paused = true)]
async fn a_deleted_dead_letter_queue_is_declared_again_and_takes_the_message() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::once>()).await;
    scene.broker.delete_queue("once.dlq");
    scene.put("once", "a");
    let dead = scene.lying("once.dlq", 1).await;
    assert_eq!(text(&dead[0], "x-acemq-error"), Some("attempts exhausted after 1 delivery: it fails"));
    scene.empty("once").await;
    assert_eq!(script.attempts(), [1], "the original was held meanwhile, not delivered again");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_parking_queue_is_declared_again_and_takes_the_message() {
    let script = Script::new(async |_, _| Ok(Ack::park("a person has to look")));
    let scene = Scene::start(app(&script).consumer::<consumers::once>()).await;
    scene.broker.delete_queue("once.parked");
    scene.put("once", "a");
    let parked = scene.lying("once.parked", 1).await;
    assert_eq!(text(&parked[0], "x-acemq-error"), Some("parked by the handler: a person has to look"));
}

#[tokio::test(start_paused = true)]
async fn a_missing_rung_costs_a_wait_in_the_consumer_and_is_there_for_the_next() {
    let script = Script::new(async |call, _| if call.attempt < 3 { Err("no".to_owned()) } else { Ok(Ack::accept()) });
    let scene = Scene::start(app(&script).consumer::<consumers::long>()).await;
    scene.broker.delete_queue("long.retry.1m");
    scene.put("long", "a");
    script.called(1, super::scene::LATEST).await;
    scene.broker.wait_until(|view| view.exists("long.retry.1m")).await;
    assert_eq!(scene.broker.unacked("long"), 1, "the original is held while the wait is spent here");
    script.called(2, super::scene::LATEST).await;
    assert_eq!(scene.lying("long.retry.1m", 1).await.len(), 1);
    script.called(3, super::scene::LATEST).await;
    let calls = script.calls();
    for pair in calls.windows(2) {
        let waited = pair[1].at - pair[0].at;
        assert!(waited >= Duration::from_mins(1) && waited < Duration::from_secs(62), "{waited:?}");
    }
    assert_eq!(script.attempts(), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_the_broker_refuses_is_tried_again_while_the_original_is_held() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::once>()).await;
    scene.broker.nack_next(4);
    scene.put("once", "a");
    assert_eq!(scene.lying("once.dlq", 1).await.len(), 1);
    scene.empty("once").await;
    assert_eq!(script.attempts(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_is_refused_for_long_leaves_the_original_in_its_queue_and_its_attempt_as_it_was() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    scene.broker.nack_next(usize::MAX);
    scene.put("short", "a");
    script.called(10, super::scene::LATEST).await;
    assert!(script.attempts().iter().all(|attempt| *attempt == 1), "{:?}", script.attempts());
    assert_eq!(scene.broker.depth("short"), 1);
    let calls = script.calls();
    let span = calls.last().unwrap().at - calls[0].at;
    assert!(span > Duration::from_secs(45), "ten runs in {span:?}: it goes round at full speed");
    scene.broker.nack_next(0);
    assert_eq!(attempt(&scene.lying("short.dlq", 1).await[0]), Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_confirm_that_never_comes_leaves_the_original_unacknowledged() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::once>()).await;
    scene.broker.lose_confirms(1);
    scene.put("once", "a");
    let dead = scene.lying("once.dlq", 1).await;
    assert_eq!(scene.broker.depth("once"), 1, "acknowledged without a confirm");
    scene.empty("once").await;
    // The second copy is the price of an answer that was lost: a duplicate, never a loss.
    assert_eq!(scene.lying("once.dlq", 2).await.len(), dead.len() + 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_lost_between_the_copy_and_its_confirm_loses_nothing() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::once>()).await;
    scene.broker.stall_confirms(true);
    scene.put("once", "a");
    scene.lying("once.dlq", 1).await;
    scene.broker.cut();
    scene.broker.stall_confirms(false);
    scene.empty("once").await;
    assert!(!scene.broker.messages("once.dlq").is_empty());
}

#[tokio::test(start_paused = true)]
async fn while_publishers_are_blocked_the_originals_are_held_and_nothing_is_run_again() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::once>()).await;
    scene.broker.block("low on memory");
    for number in 0..5 {
        scene.put("once", &number.to_string());
    }
    script.called(5, super::scene::LATEST).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!((script.calls().len(), scene.broker.unacked("once")), (5, 5));
    let health = scene.running.health().await;
    assert_eq!(health.publishing.blocked.as_deref(), Some("low on memory"));
    assert_eq!(health.status, acemq::health::Status::Up, "back pressure is no illness");
    scene.broker.unblock();
    assert_eq!(scene.lying("once.dlq", 5).await.len(), 5);
    assert_eq!(script.calls().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn during_an_alarm_a_shutdown_does_not_wait_for_a_move() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::once>()).await;
    scene.broker.block("low on memory");
    scene.put("once", "a");
    script.called(1, super::scene::LATEST).await;
    let began = Instant::now();
    let drained = scene.running.close().await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(drained.finished);
    let back = scene.broker.messages("once");
    assert_eq!((back.len(), attempt(&back[0])), (1, None), "back, and as it came");
}

#[tokio::test(start_paused = true)]
async fn a_forged_count_of_deaths_does_not_count() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    let forged = [("count", Value::I64(99)), ("queue", Value::from("short"))];
    let death = forged.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let sent = headers(&[("x-death", Value::Array(vec![Value::Table(death)])), ("x-delivery-count", Value::I64(0))]);
    put(&scene.broker, "short", "a", sent);
    let dead = scene.lying("short.dlq", 1).await;
    assert_eq!(script.attempts(), [1, 2, 3]);
    assert!(!dead[0].properties.headers.contains_key("x-death"));
}

#[tokio::test(start_paused = true)]
async fn the_expiration_of_a_publisher_neither_shortens_a_wait_nor_ends_a_dead_letter() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::long>()).await;
    let mut properties = headers(&[]);
    properties.expiration = Some("300".to_owned());
    put(&scene.broker, "long", "a", properties);
    let dead = scene.lying("long.dlq", 1).await;
    let calls = script.calls();
    assert_eq!(calls.len(), 4);
    assert!(calls[1].at - calls[0].at >= Duration::from_mins(1));
    assert_eq!(dead[0].properties.expiration, None);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(scene.broker.ready("long.dlq"), 1);
}

#[tokio::test(start_paused = true)]
async fn two_queues_with_the_same_waits_never_get_each_others_messages() {
    let script = Script::fails();
    let scene = Scene::start(app(&script).consumer::<consumers::long>().consumer::<consumers::long_too>()).await;
    scene.put("long", "of long");
    scene.put("long.too", "of the other");
    for (queue, body) in [("long.dlq", "of long"), ("long.too.dlq", "of the other")] {
        assert_eq!(scene.lying(queue, 1).await[0].body, body.as_bytes());
    }
    assert_eq!(script.calls().len(), 4 + 4);
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_is_not_held_up_by_a_long_one() {
    let script = Script::new(async |call, _| {
        if call.attempt == 1 {
            return Ok(Ack::retry_after(
                "later",
                if call.body == "slow" { Duration::from_secs(20) } else { Duration::from_secs(2) },
            ));
        }
        Ok(Ack::accept())
    });
    let scene = Scene::start(app(&script).consumer::<consumers::short>()).await;
    scene.put("short", "slow");
    scene.put("short", "fast");
    script.called(4, super::scene::LATEST).await;
    let order: Vec<String> = script.calls().into_iter().map(|call| call.body).collect();
    assert_eq!(order, ["slow", "fast", "fast", "slow"]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_in_the_broker_that_ends_while_its_queue_is_gone_loses_nothing() {
    let script = Script::new(async |call, _| if call.attempt == 1 { Err("no".to_owned()) } else { Ok(Ack::accept()) });
    let broker = Memory::private();
    let theirs = Declaration::Queue { name: "theirs.long".to_owned(), arguments: Table::new() };
    broker.declare(&theirs).unwrap();
    let scene = Scene::over(&broker, broker.clone(), app(&script).consumer::<consumers::theirs_long>()).await;
    scene.put("theirs.long", "a");
    scene.lying("theirs.long.retry.1m", 1).await;
    broker.delete_queue("theirs.long");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!((script.calls().len(), broker.view(|view| view.kept("theirs.long.retry.1m"))), (1, 1));
    broker.declare(&theirs).unwrap();
    // The consumer binds it again, and the broker tries again every three minutes.
    script.called(2, Duration::from_mins(4)).await;
    assert_eq!(script.attempts(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_fails_in_the_middle_of_a_shutdown_is_still_set_aside() {
    let script = Script::new(async |_, _| {
        tokio::time::sleep(Duration::from_secs(3)).await;
        Err("it fails".to_owned())
    });
    let scene = Scene::start(app(&script).consumer::<consumers::once>()).await;
    scene.put("once", "a");
    script.called(1, super::scene::LATEST).await;
    let drained = scene.running.close().await;
    assert_eq!((drained.finished, drained.totals.dead_lettered), (true, 1));
    let dead = scene.broker.messages("once.dlq");
    assert_eq!(text(&dead[0], "x-acemq-error"), Some("attempts exhausted after 1 delivery: it fails"));
    assert_eq!(scene.broker.depth("once"), 0);
}
