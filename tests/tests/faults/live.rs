//! On RabbitMQ 3.10 and 4.x: what only a real broker does.

use std::time::{Duration, Instant};

use acemq::{
    Ack, App, Running,
    health::Status,
    transport::rabbitmq::{Config, RabbitMq},
};
use acemq_tests::{
    amqp::{Client, Received, table, text},
    eventually,
    proxy::Proxy,
    rabbitmq::{Node, Version},
    unique,
};
use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable},
};
use tokio::sync::OnceCell;

use super::{consumers, scene::Script};

const SOON: Duration = Duration::from_secs(60);

/// A node that takes a delivery back after a second, and on which each test has the queues of one consumer.
async fn node(version: Version) -> &'static Node {
    static V3: OnceCell<Node> = OnceCell::const_new();
    static V4: OnceCell<Node> = OnceCell::const_new();
    let cell = match version {
        Version::V3 => &V3,
        Version::V4 => &V4,
    };
    let start = async || {
        let builder = Node::builder(version).conf("consumer_timeout = 1000");
        builder.advanced("[{rabbit, [{channel_tick_interval, 200}]}].\n").start().await
    };
    cell.get_or_init(start).await
}

macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod rabbitmq_3 {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                acemq_tests::needs!(RabbitMq3);
                super::$name(super::node(acemq_tests::rabbitmq::Version::V3).await).await;
            })*
        }
        mod rabbitmq_4 {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                acemq_tests::needs!(RabbitMq4);
                super::$name(super::node(acemq_tests::rabbitmq::Version::V4).await).await;
            })*
        }
    };
}

on_both! {
    a_delivery_that_is_held_too_long_for_the_broker_comes_again_and_the_consumer_with_it,
    a_queue_that_an_operator_deletes_shows_within_a_second_and_comes_back,
    after_many_resets_the_broker_sees_one_consumer_over_two_connections,
    a_copy_goes_to_its_target_alone_whatever_its_publisher_asked_for,
    headers_that_fill_a_frame_and_an_error_of_a_megabyte_still_end_as_a_dead_letter,
    while_an_alarm_lasts_accepted_messages_are_acknowledged_and_failed_ones_held,
    what_waits_in_a_long_queue_stays_out_of_memory,
    while_the_dead_letter_queue_may_not_be_declared_the_message_stays_in_its_queue,
}

async fn start(url: &str, app: App) -> Running {
    let config = Config::new(url).heartbeat(Duration::from_secs(2)).close_timeout(Duration::from_secs(2));
    app.transport(RabbitMq::with(config).unwrap()).start().await.unwrap()
}

fn app(script: &Script) -> App {
    App::new().state(script.clone())
}

async fn take_one(client: &Client, queue: &str) -> Received {
    eventually(SOON, &format!("a message in {queue}"), async || client.get(queue).await.ok_or("none")).await
}

async fn a_delivery_that_is_held_too_long_for_the_broker_comes_again_and_the_consumer_with_it(node: &'static Node) {
    let script = Script::new(async |call, context| {
        // Long enough for the broker, and only the first time.
        if call.body == "slow" && !context.redelivered() {
            tokio::time::sleep(Duration::from_secs(4)).await;
        }
        Ok(Ack::accept())
    });
    let running = start(&node.url(), app(&script).consumer::<consumers::held>()).await;
    let client = Client::connect(&node.url()).await;
    client.send("held", "slow").await;
    script.called(2, SOON).await;
    client.send("held", "next").await;
    script.called(3, SOON).await;
    let health = running.health().await;
    assert_eq!(health.status, Status::Up, "{health:?}");
    assert!(health.consumers.iter().all(|consumer| consumer.resubscribed >= 1));
    assert_eq!(script.attempts(), [1, 1, 1]);
    let drained = running.close().await;
    assert!(drained.finished && drained.totals.lost == 1, "{drained:?}");
    assert_eq!(client.ready("held").await, Some(0));
}

async fn a_queue_that_an_operator_deletes_shows_within_a_second_and_comes_back(node: &'static Node) {
    let script = Script::accepts();
    let client = Client::connect(&node.url()).await;
    client.declare("theirs", FieldTable::default()).await;
    let running = start(&node.url(), app(&script).consumer::<consumers::theirs>()).await;
    client.delete("theirs").await;
    eventually(Duration::from_secs(1), "the consumer to be degraded", async || match running.health().await.status {
        Status::Degraded => Ok(()),
        other => Err(other),
    })
    .await;
    client.declare("theirs", FieldTable::default()).await;
    client.send("theirs", "a").await;
    script.called(1, Duration::from_secs(31)).await;
    assert_eq!(running.health().await.status, Status::Up);
    let _ = running.close().await;
}

async fn after_many_resets_the_broker_sees_one_consumer_over_two_connections(node: &'static Node) {
    let script = Script::accepts();
    let proxy = Proxy::start(&node.url()).await;
    let running = start(proxy.url(), app(&script).consumer::<consumers::short>()).await;
    for flap in 0_u64..12 {
        if flap % 3 == 0 {
            proxy.cut().await;
        } else {
            proxy.reset().await;
        }
        tokio::time::sleep(Duration::from_millis(flap * 53 % 400)).await;
    }
    let client = Client::connect(&node.url()).await;
    client.send("short", "a").await;
    script.called(1, Duration::from_secs(40)).await;
    eventually(Duration::from_secs(40), "two connections and one consumer", async || {
        match (proxy.open(), client.consumers("short").await) {
            (2, Some(1)) => Ok(()),
            other => Err(other),
        }
    })
    .await;
    let _ = running.close().await;
}

async fn a_copy_goes_to_its_target_alone_whatever_its_publisher_asked_for(node: &'static Node) {
    let script = Script::fails();
    let running = start(&node.url(), app(&script).consumer::<consumers::copied>()).await;
    let client = Client::connect(&node.url()).await;
    client.declare("copied.too", FieldTable::default()).await;
    let also = || AMQPValue::FieldArray(vec![text("copied.too")].into());
    let headers = table([("CC", also()), ("x-death", also()), ("mine", text("kept"))]);
    let properties = BasicProperties::default()
        .with_headers(headers)
        .with_expiration("60000".into())
        .with_user_id("guest".into())
        .with_delivery_mode(1);
    client.publish("", "copied", b"a", properties).await;
    let dead = take_one(&client, "copied.dlq").await;
    assert_eq!(script.attempts(), [1, 2, 3]);
    assert_eq!(client.take_all("copied.too").await.len(), 1, "only the publisher's own publish went there");
    let properties = &dead.properties;
    assert_eq!((properties.expiration(), properties.user_id(), properties.delivery_mode()), (&None, &None, &Some(2)));
    assert_eq!(dead.header_names(), ["mine", "x-acemq-attempt", "x-acemq-error", "x-acemq-first-seen"]);
    let _ = running.close().await;
}

async fn headers_that_fill_a_frame_and_an_error_of_a_megabyte_still_end_as_a_dead_letter(node: &'static Node) {
    let script = Script::new(async |_, _| Err("€".repeat(350_000)));
    let running = start(&node.url(), app(&script).consumer::<consumers::framed>()).await;
    let client = Client::connect(&node.url()).await;
    // The second leaves no room in a frame of 128 KiB for a word about what went wrong.
    for (size, told) in [(1_000, true), (130_900, false)] {
        let headers = table([("big", text(&"x".repeat(size)))]);
        client.publish("", "framed", b"a", BasicProperties::default().with_headers(headers)).await;
        let dead = take_one(&client, "framed.dlq").await;
        assert_eq!(dead.text_header("big").map(|big| big.len()), Some(size));
        let reason = dead.text_header("x-acemq-error");
        assert_eq!(reason.is_some(), told, "{size}");
        assert!(reason.is_none_or(|reason| reason.ends_with("(cut)") && reason.contains('€')));
    }
    assert_eq!(running.health().await.consumers[0].resubscribed, 0, "the connection survived it");
    let _ = running.close().await;
}

async fn while_an_alarm_lasts_accepted_messages_are_acknowledged_and_failed_ones_held(node: &'static Node) {
    let script = Script::new(async |call, _| match call.body.as_str() {
        "good" => Ok(Ack::accept()),
        _ => Err("bad".to_owned()),
    });
    let running = start(&node.url(), app(&script).consumer::<consumers::alarmed>()).await;
    let client = Client::connect(&node.url()).await;
    running.pause_consuming();
    for body in ["good", "bad", "good", "good"] {
        client.send("alarmed", body).await;
    }
    client.close().await;
    node.eval(
        "rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []}), spawn(fun() -> timer:sleep(6000), \
         rabbit_alarm:clear_alarm({resource_limit, memory, node()}) end), ok.",
    )
    .await;
    let began = Instant::now();
    running.resume_consuming();
    eventually(Duration::from_secs(5), "three acknowledged messages", async || match running.totals().acked {
        3 => Ok(()),
        other => Err(other),
    })
    .await;
    let watcher = Client::connect(&node.url()).await;
    assert_eq!(watcher.ready("alarmed.dlq").await, Some(0));
    assert!(began.elapsed() < Duration::from_secs(6), "the alarm was over too early to show anything");
    assert_ne!(running.health().await.status, Status::Down);
    // Afterwards it arrives.
    take_one(&watcher, "alarmed.dlq").await;
    let _ = running.close().await;
}

async fn while_the_dead_letter_queue_may_not_be_declared_the_message_stays_in_its_queue(node: &'static Node) {
    let script = Script::fails();
    let (user, all) = (unique("user"), ".*");
    node.add_user(&user, "secret", "/", [all, all, all]).await;
    let app = app(&script).consumer::<consumers::forbidden>();
    let running = start(&node.url_for(&user, "secret", "/"), app).await;
    let client = Client::connect(&node.url()).await;
    node.permit(&user, "/", ["^$", all, all]).await;
    client.delete("forbidden.dlq").await;
    client.send("forbidden", "a").await;
    // The node takes it back while its move is tried, and then its consumer lacks the queue too.
    eventually(SOON, "the message in its queue", async || match client.ready("forbidden").await {
        Some(1) => Ok(()),
        other => Err(other),
    })
    .await;
    let told = eventually(SOON, "a degraded consumer", async || {
        let consumer = running.health().await.consumers.remove(0);
        if consumer.status == Status::Degraded { Ok(consumer.last_error.unwrap_or_default()) } else { Err(consumer) }
    })
    .await;
    assert!(told.contains("`configure`"), "{told}");
    assert_eq!(client.ready("forbidden.dlq").await, None);
    node.permit(&user, "/", [all, all, all]).await;
    let dead =
        eventually(Duration::from_secs(60), "the dead letter", async || match client.ready("forbidden.dlq").await {
            Some(1..) => client.get("forbidden.dlq").await.ok_or("none"),
            _ => Err("none"),
        })
        .await;
    assert_eq!((dead.text(), dead.number_header("x-acemq-attempt")), ("a".to_owned(), Some(1)));
    assert!(script.attempts().iter().all(|attempt| *attempt == 1), "{:?}", script.attempts());
    let _ = running.close().await;
}

fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// So many messages wait, as `FAULTS_FLOOD` says; a million takes a minute.
async fn what_waits_in_a_long_queue_stays_out_of_memory(node: &'static Node) {
    let count: u32 = std::env::var("FAULTS_FLOOD").map_or(30_000, |count| count.parse().unwrap());
    let script = Script::new(async |_, _| {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(Ack::accept())
    });
    let client = Client::connect(&node.url()).await;
    client.declare("flooded", FieldTable::default()).await;
    let body = vec![b'x'; 4_096];
    let publish = |client: &Client| {
        let options = lapin::options::BasicPublishOptions::default();
        let channel = client.channel().clone();
        let body = body.clone();
        async move { channel.basic_publish("".into(), "flooded".into(), options, &body, BasicProperties::default()).await }
    };
    for _ in 0..count / 500 {
        let confirms = futures_util::future::try_join_all((0..500).map(|_| publish(&client))).await.unwrap();
        for confirm in confirms {
            let _ = confirm.await.unwrap();
        }
    }
    let before = resident_bytes();
    let running = start(&node.url(), app(&script).consumer::<consumers::flooded>()).await;
    script.called(500, SOON).await;
    let grown = resident_bytes().saturating_sub(before);
    let waiting = u64::from(count) * 4_096;
    assert!(grown < waiting / 4, "{grown} bytes more while {waiting} waited");
    assert!(running.held() + running.in_flight() <= 20);
    let _ = running.close().await;
    client.delete("flooded").await;
}
