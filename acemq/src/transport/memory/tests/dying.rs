use super::*;
use crate::transport::Verdict;

const HOUR: Duration = Duration::from_hours(1);

fn ttl(milliseconds: i64) -> (&'static str, Value) {
    ("x-message-ttl", Value::I64(milliseconds))
}

fn dead_to(exchange: &str) -> (&'static str, Value) {
    ("x-dead-letter-exchange", exchange.into())
}

fn dead_key(key: &str) -> (&'static str, Value) {
    ("x-dead-letter-routing-key", key.into())
}

fn kind(kind: &str) -> (&'static str, Value) {
    ("x-queue-type", kind.into())
}

/// The entries of `x-death` as queue, reason, count, exchange and routing keys.
fn deaths(message: &Incoming) -> Vec<(String, String, i64, String, Vec<String>)> {
    let text = |value: &Value| value.as_text().unwrap().to_owned();
    let Value::Array(entries) = &message.properties.headers["x-death"] else { panic!("no array") };
    let read = |entry: &Value| {
        let Value::Table(entry) = entry else { panic!("no table") };
        let (Value::I64(count), Value::Array(keys)) = (&entry["count"], &entry["routing-keys"]) else {
            panic!("other types: {entry:?}")
        };
        let keys = keys.iter().map(text).collect();
        let [queue, reason, exchange] = ["queue", "reason", "exchange"].map(|at| text(&entry[at]));
        (queue, reason, *count, exchange, keys)
    };
    entries.iter().map(read).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_waits_out_its_queue_and_moves_on() {
    for of in ["classic", "quorum"] {
        let broker =
            broker(&[queue("home", []), queue("wait", [kind(of), ttl(7_200_000), dead_to(""), dead_key("home")])]);
        fill(&broker, "wait", &["1", "2"]);
        tokio::time::advance(Duration::from_millis(7_199_999)).await;
        assert_eq!((broker.ready("wait"), broker.ready("home")), (2, 0));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!((broker.depth("wait"), broker.ready("home")), (0, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn time_passes_for_a_consumer_that_only_waits() {
    let broker = broker(&[queue("home", []), queue("wait", [ttl(3_600_000), dead_to(""), dead_key("home")])]);
    let (_connection, mut subscription) = consumer(&broker, "home", 1).await;
    let start = tokio::time::Instant::now();
    fill(&broker, "wait", &["1"]);
    let delivery = subscription.deliveries.next().await.unwrap().unwrap();
    assert_eq!(delivery.routing_key, "home");
    assert_eq!(start.elapsed(), HOUR);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_wait_declared_later_is_not_slept_through() {
    let broker = broker(&[queue("long", [ttl(7_200_000)]), queue("short", [ttl(1000)])]);
    fill(&broker, "long", &["1"]);
    tokio::task::yield_now().await;
    fill(&broker, "short", &["2"]);
    let start = tokio::time::Instant::now();
    broker.wait_until(|view| view.depth("short") == 0).await;
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    broker.wait_until(|view| view.depth("long") == 0).await;
    assert_eq!(start.elapsed(), HOUR * 2);
}

#[tokio::test(start_paused = true)]
async fn a_message_behind_one_that_lives_longer_outlives_its_time() {
    for of in ["classic", "quorum"] {
        let broker = broker(&[queue("dead", []), queue("q", [kind(of), dead_to(""), dead_key("dead")])]);
        for (body, lifetime) in [("long", "2000"), ("short", "100")] {
            let mut mortal = message("", "q", body);
            mortal.properties.expiration = Some(lifetime.to_owned());
            assert_eq!(broker.publish(mortal), Ok(Routing::Routed));
        }
        tokio::time::advance(Duration::from_millis(1999)).await;
        assert_eq!(broker.ready("q"), 2, "{of}");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(bodies(&broker.take("dead")), ["long", "short"], "{of}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_shorter_of_two_lifetimes_counts_and_the_own_one_ends_with_the_death() {
    let broker = broker(&[
        exchange("x", ExchangeKind::Fanout),
        queue("dead", []),
        queue("q", [ttl(500), dead_to("x")]),
        binding("dead", "x", ""),
    ]);
    for (expiration, lives) in [("100", 100), ("5000", 500)] {
        let mut mortal = message("", "q", "m");
        mortal.properties.expiration = Some(expiration.to_owned());
        assert_eq!(broker.publish(mortal), Ok(Routing::Routed));
        let start = tokio::time::Instant::now();
        broker.wait_until(|view| view.ready("dead") == 1).await;
        assert_eq!(start.elapsed(), Duration::from_millis(lives));
        let dead = broker.take("dead").remove(0);
        assert_eq!((&*dead.exchange, &*dead.routing_key), ("x", "q"));
        assert_eq!(dead.properties.expiration, None);
        let Value::Array(entries) = &dead.properties.headers["x-death"] else { panic!("no array") };
        let Value::Table(entry) = &entries[0] else { panic!("no table") };
        assert_eq!(entry["original-expiration"], expiration.into());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lifetime_of_zero_reaches_a_consumer_with_room_and_nobody_else() {
    for of in ["classic", "quorum"] {
        let broker = broker(&[queue("q", [kind(of), ttl(0)])]);
        fill(&broker, "q", &["1"]);
        assert_eq!(broker.depth("q"), 0, "{of}");
        let (_connection, mut subscription) = consumer(&broker, "q", 1).await;
        fill(&broker, "q", &["2", "3"]);
        assert_eq!(bodies(&arrived(&mut subscription)), ["2"], "{of}");
        assert_eq!(broker.depth("q"), 1, "{of}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_consumer_holds_does_not_expire_until_it_comes_back() {
    let broker = broker(&[queue("q", [ttl(1000)])]);
    fill(&broker, "q", &["1"]);
    let (_connection, mut subscription) = consumer(&broker, "q", 1).await;
    let held = arrived(&mut subscription);
    tokio::time::advance(HOUR).await;
    assert_eq!(broker.unacked("q"), 1);
    assert_eq!(subscription.channel.settle(held[0].tag, Verdict::Requeue), crate::transport::Settled::Done);
    assert_eq!(broker.depth("q"), 0);
    assert_eq!(arrived(&mut subscription).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn every_death_is_on_record_over_whatever_a_client_claimed() {
    let broker = broker(&[
        exchange("x", ExchangeKind::Topic),
        queue("a", [ttl(10), dead_to(""), dead_key("b")]),
        queue("b", [ttl(10), dead_to("x"), dead_key("c")]),
        queue("c", []),
        binding("a", "x", "start"),
        binding("c", "x", "c"),
    ]);
    let mut claimed = message("x", "start", "m");
    claimed.properties.headers =
        Table::from([("x-death".to_owned(), "a lie".into()), ("own".to_owned(), Value::I8(1))]);
    assert_eq!(broker.publish(claimed), Ok(Routing::Routed));
    broker.wait_until(|view| view.ready("c") == 1).await;
    let dead = broker.take("c").remove(0);
    let entry = |queue: &str, exchange: &str, key: &str| {
        (queue.to_owned(), "expired".to_owned(), 1, exchange.to_owned(), vec![key.to_owned()])
    };
    assert_eq!(deaths(&dead), [entry("b", "", "b"), entry("a", "x", "start")]);
    let headers = &dead.properties.headers;
    for (name, expected) in [
        ("x-first-death-queue", "a"),
        ("x-first-death-exchange", "x"),
        ("x-first-death-reason", "expired"),
        ("x-last-death-queue", "b"),
        ("x-last-death-exchange", ""),
        ("x-last-death-reason", "expired"),
    ] {
        assert_eq!(headers[name], expected.into(), "{name}");
    }
    assert_eq!(headers["own"], Value::I8(1));
    assert!(!dead.redelivered);
}

#[tokio::test(start_paused = true)]
async fn a_circle_that_only_time_drives_ends_after_one_round() {
    let broker = broker(&[
        queue("a", [ttl(50), dead_to(""), dead_key("b")]),
        queue("b", [ttl(50), dead_to(""), dead_key("a")]),
        queue("self", [ttl(50), dead_to(""), dead_key("self")]),
    ]);
    fill(&broker, "a", &["1"]);
    fill(&broker, "self", &["2"]);
    tokio::time::advance(Duration::from_millis(50)).await;
    assert_eq!((broker.depth("b"), broker.depth("self")), (1, 0));
    tokio::time::advance(Duration::from_millis(50)).await;
    assert_eq!((broker.depth("a"), broker.depth("b")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_without_a_target_is_lost_unless_the_queue_may_lose_none() {
    let safe = |name: &str, target: [(&'static str, Value); 2]| {
        let [exchange, key] = target;
        let strategy = ("x-dead-letter-strategy", "at-least-once".into());
        let overflow = ("x-overflow", "reject-publish".into());
        queue(name, [kind("quorum"), strategy, overflow, ttl(100), exchange, key])
    };
    let broker = broker(&[
        queue("lossy", [ttl(100), dead_to(""), dead_key("gone")]),
        safe("safe", [dead_to(""), dead_key("gone")]),
        safe("safe, no exchange", [dead_to("gone"), dead_key("gone")]),
    ]);
    for queue in ["lossy", "safe", "safe, no exchange"] {
        fill(&broker, queue, &["1"]);
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    broker.view(|view| {
        assert_eq!(view.depth("lossy"), 0);
        for queue in ["safe", "safe, no exchange"] {
            assert_eq!((view.ready(queue), view.kept(queue)), (0, 1), "{queue}");
        }
    });
    broker.declare(&queue("gone", [])).unwrap();
    let start = tokio::time::Instant::now();
    broker.wait_until(|view| view.ready("gone") == 1).await;
    // RabbitMQ tries again after three minutes.
    assert!(start.elapsed() > Duration::from_secs(178));
    assert_eq!(deaths(&broker.take("gone")[0]).len(), 1);
    assert_eq!(broker.depth("safe"), 0);
    assert_eq!(broker.depth("safe, no exchange"), 1);
}

#[tokio::test]
async fn a_message_over_the_length_goes_the_way_of_the_dead() {
    let broker =
        broker(&[queue("dead", []), queue("q", [("x-max-length", Value::U8(1)), dead_to(""), dead_key("dead")])]);
    fill(&broker, "q", &["1", "2", "3"]);
    assert_eq!(bodies(&broker.take("q")), ["3"]);
    let dead = broker.take("dead");
    assert_eq!(bodies(&dead), ["1", "2"]);
    assert_eq!(deaths(&dead[0])[0].1, "maxlen");
}

#[tokio::test]
async fn a_quorum_queue_gives_up_a_message_that_comes_back_too_often() {
    let limit = |limit: i32| ("x-delivery-limit", Value::I32(limit));
    let table = [
        ("default", vec![], Some(21)),
        ("two", vec![limit(2)], Some(3)),
        ("zero", vec![limit(0)], Some(1)),
        ("none", vec![limit(-1)], None),
    ];
    for (name, limit, deliveries) in table {
        let mut arguments = vec![kind("quorum"), dead_to(""), dead_key("dead")];
        arguments.extend(limit);
        let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let name = name.to_owned();
        let broker = broker(&[queue("dead", []), Declaration::Queue { name: name.clone(), arguments }]);
        fill(&broker, &name, &["1"]);
        let (_connection, mut subscription) = consumer(&broker, &name, 1).await;
        let mut seen = 0;
        while let [delivery] = &arrived(&mut subscription)[..] {
            let count = delivery.properties.headers.get("x-delivery-count");
            let expected = (seen > 0).then_some(Value::I64(seen));
            assert_eq!(count, expected.as_ref(), "{name}");
            seen += 1;
            if seen == 100 {
                break;
            }
            let _ = subscription.channel.settle(delivery.tag, Verdict::Requeue);
        }
        assert_eq!(seen, deliveries.unwrap_or(100), "{name}");
        let dead = broker.take("dead");
        assert_eq!(dead.len(), usize::from(deliveries.is_some()), "{name}");
        for message in &dead {
            assert_eq!(deaths(message)[0].1, "delivery_limit");
            assert!(!message.properties.headers.contains_key("x-delivery-count"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_whose_last_handle_is_gone_leaves_no_task_behind() {
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let broker = broker(&[queue("q", [ttl(3_600_000)])]);
    fill(&broker, "q", &["1"]);
    tokio::task::yield_now().await;
    drop(broker);
    tokio::task::yield_now().await;
    let after = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(before, after);
}

#[test]
fn time_goes_on_after_the_runtime_in_which_it_began() {
    let broker = broker(&[queue("q", [ttl(50)])]);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime().block_on(async { fill(&broker, "q", &["1"]) });
    assert_eq!(broker.ready("q"), 1);
    runtime().block_on(broker.wait_until(|view| view.depth("q") == 0));
}
