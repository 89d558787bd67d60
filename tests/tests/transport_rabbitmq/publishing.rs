use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use acemq::{
    envelope::{Properties, Table, Value},
    topology::{Declaration, ExchangeKind},
    transport::{Connection, Lane, Outgoing, PublishError, Routing, rabbitmq::Config},
};
use acemq_tests::{amqp::Client, on_each_rabbitmq, rabbitmq::Node, unique, wait::within};
use bytes::Bytes;
use futures_util::future::join_all;
use lapin::options::ExchangeDeleteOptions;

use crate::bench::{Bench, SOON, is_open, message, next};

fn returned(answer: &Result<Routing, PublishError>) -> bool {
    match answer {
        Ok(Routing::Routed) => false,
        Ok(Routing::Returned { text }) => {
            assert_eq!(text, "NO_ROUTE");
            true
        }
        Err(error) => panic!("{error}"),
    }
}

/// Publishes every message from one of many tasks, every tenth to nowhere; gives the numbers that were judged wrongly.
async fn wrong(publish: &Arc<dyn Connection>, lane: Lane, queue: &str, messages: usize, tasks: usize) -> Vec<usize> {
    let counter = Arc::new(AtomicUsize::new(0));
    let run = (0..tasks).map(|_| {
        let (publish, counter, queue) = (Arc::clone(publish), Arc::clone(&counter), queue.to_owned());
        tokio::spawn(async move {
            let mut wrong = Vec::new();
            loop {
                let number = counter.fetch_add(1, Ordering::Relaxed);
                if number >= messages {
                    return wrong;
                }
                let unroutable = number % 10 == 7;
                let target = if unroutable { "nowhere" } else { &queue };
                let answer = publish.publish(message(target, "x"), lane).await;
                if returned(&answer) != unroutable {
                    wrong.push(number);
                }
            }
        })
    });
    let runs = within(SOON * 10, "all publishes", join_all(run)).await;
    runs.into_iter().flat_map(|run| run.unwrap()).collect()
}

/// All integers, floats and the like, with nesting.
fn all_types() -> Table {
    let inner = Table::from([("inner".to_owned(), Value::I16(-3)), ("short".to_owned(), Value::from("s"))]);
    [
        ("bool", Value::Bool(true)),
        ("i8", Value::I8(i8::MIN)),
        ("u8", Value::U8(u8::MAX)),
        ("i16", Value::I16(i16::MIN)),
        ("u16", Value::U16(u16::MAX)),
        ("i32", Value::I32(i32::MIN)),
        ("u32", Value::U32(u32::MAX)),
        ("i64", Value::I64(i64::MIN)),
        ("f32", Value::F32(1.5)),
        ("f64", Value::F64(-2.25)),
        ("decimal", Value::Decimal { scale: 2, value: 314 }),
        ("string", Value::LongString(Bytes::from_static(b"\xff\x00"))),
        ("array", Value::Array(vec![Value::Void, Value::from("s"), Value::Table(inner.clone())])),
        ("timestamp", Value::Timestamp(1_700_000_000)),
        ("table", Value::Table(inner)),
        ("bytes", Value::Bytes(Bytes::from_static(b"\x00\x01"))),
        ("void", Value::Void),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

on_each_rabbitmq! {
    async fn every_unroutable_message_is_returned_and_no_other(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        let mut routed = 0;
        for (tasks, messages) in [(1, 1000), (8, 20_000), (64, 20_000), (256, 20_000)] {
            for lane in [Lane::Hop, Lane::User] {
                assert_eq!(wrong(&bench.publish, lane, &queue, messages, tasks).await, [0; 0], "{tasks} tasks");
                routed += messages - messages / 10;
            }
        }
        let ready = Client::connect(&node.url()).await.ready(&queue).await.unwrap();
        assert_eq!(usize::try_from(ready).unwrap(), routed);
    }

    async fn many_with_one_id_or_none_are_told_apart_by_where_they_go(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        for id in [Some(unique("id")), None] {
            let answers = join_all((0..2000).map(|number| {
                let target = if number % 3 == 0 { "nowhere" } else { &queue };
                let mut message = message(target, "x");
                message.properties.message_id.clone_from(&id);
                bench.publish.publish(message, Lane::Hop)
            }));
            for (number, answer) in within(SOON, "all publishes", answers).await.iter().enumerate() {
                assert_eq!(returned(answer), number % 3 == 0, "{number} with {id:?}");
            }
        }
    }

    async fn what_is_not_mandatory_is_routed_to_nowhere(node: &'static Node) {
        let bench = Bench::new(node).await;
        let sent = Outgoing { mandatory: false, ..message("nowhere", "x") };
        assert_eq!(bench.send(sent).await, Ok(Routing::Routed));
    }

    async fn publishes_of_one_caller_keep_their_order(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        bench.fill(&queue, 3000).await;
        let mut subscription = bench.subscribe(&queue, 3000).await;
        for number in 0..3000 {
            assert_eq!(next(&mut subscription).await.body, number.to_string());
        }
    }

    async fn a_dropped_future_does_not_drop_its_message(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        drop(bench.publish.publish(message(&queue, "hello"), Lane::User));
        let mut subscription = bench.subscribe(&queue, 1).await;
        assert_eq!(next(&mut subscription).await.body, "hello");
    }

    async fn a_full_queue_that_rejects_makes_a_nack(node: &'static Node) {
        let bench = Bench::new(node).await;
        let limits = [("x-max-length", Value::I64(3)), ("x-overflow", Value::from("reject-publish"))];
        let queue = bench.queue_with(limits.map(|(name, value)| (name.to_owned(), value)).into()).await;
        let answers = join_all((0..30).map(|_| bench.publish.publish(message(&queue, "x"), Lane::User))).await;
        let nacked = answers.iter().filter(|answer| **answer == Err(PublishError::Nacked)).count();
        let routed = answers.iter().filter(|answer| **answer == Ok(Routing::Routed)).count();
        assert_eq!((nacked + routed, routed), (30, 3), "{answers:?}");
        assert!(is_open(&*bench.publish));
    }

    async fn a_missing_exchange_is_named_and_harms_no_other(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        let exchange = unique("exchange");
        let to = |exchange: &str| Outgoing { exchange: exchange.to_owned(), ..message(&queue, "x") };
        let answers = join_all((0..300).map(|number| {
            let exchange = if number % 100 == 50 { exchange.as_str() } else { "" };
            bench.publish.publish(to(exchange), Lane::User)
        }));
        let missing = Err(PublishError::NoExchange { exchange: exchange.clone() });
        for (number, answer) in within(SOON, "all publishes", answers).await.iter().enumerate() {
            let expected = if number % 100 == 50 { &missing } else { &Ok(Routing::Routed) };
            assert_eq!(answer, expected, "{number}");
        }
        // Once it is there it is found; and once it is gone, that is noticed too.
        let wanted = Declaration::Exchange { name: exchange.clone(), kind: ExchangeKind::Fanout };
        bench.consume.declare(&wanted).await.unwrap();
        let unbound = acemq_tests::eventually(SOON, "the exchange", async || match bench.send(to(&exchange)).await {
            Ok(routing) => Ok(routing),
            Err(error) => Err(error),
        });
        assert!(returned(&Ok(unbound.await)));
        let client = Client::connect(&node.url()).await;
        client.channel().exchange_delete(exchange.as_str().into(), ExchangeDeleteOptions::default()).await.unwrap();
        assert_eq!(bench.send(to(&exchange)).await, missing);
        assert_eq!(bench.send(to("")).await, Ok(Routing::Routed));
        assert!(is_open(&*bench.publish));
    }

    async fn a_message_that_the_broker_refuses_is_found_among_others(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        let bad = || {
            let mut message = message(&queue, "bad");
            message.properties.expiration = Some("soon".to_owned());
            message
        };
        let refused = bench.send(bad()).await.unwrap_err();
        assert!(matches!(&refused, PublishError::Invalid { why } if why.contains("expiration")), "{refused:?}");
        let answers = join_all((0..400).map(|number| {
            let message = if number == 100 { bad() } else { message(&queue, "good") };
            bench.publish.publish(message, Lane::User)
        }));
        let answers = within(SOON, "all publishes", answers).await;
        let count = |wanted: fn(&Result<Routing, PublishError>) -> bool| answers.iter().filter(|a| wanted(a)).count();
        let routed = count(|answer| *answer == Ok(Routing::Routed));
        let unknown = count(|answer| matches!(answer, Err(PublishError::Unknown { .. } | PublishError::Invalid { .. })));
        assert_eq!(routed + unknown, 400, "{answers:?}");
        assert!(matches!(answers[100], Err(PublishError::Unknown { .. } | PublishError::Invalid { .. })));
        // The lane is careful now and so finds the next one.
        let (first, second, third) = tokio::join!(
            bench.publish.publish(message(&queue, "good"), Lane::User),
            bench.publish.publish(bad(), Lane::User),
            bench.publish.publish(message(&queue, "good"), Lane::User),
        );
        assert_eq!((first, third), (Ok(Routing::Routed), Ok(Routing::Routed)));
        assert!(matches!(second, Err(PublishError::Invalid { .. })), "{second:?}");
        // And the other lane knew of nothing.
        assert!(is_open(&*bench.publish));
    }

    async fn a_publish_without_the_permission_is_told(node: &'static Node) {
        let user = unique("user");
        node.add_user(&user, "secret", "/", [".*", "^$", ".*"]).await;
        let bench = Bench::with(Config::new(node.url_for(&user, "secret", "/"))).await;
        let refused = bench.send(message("q", "x")).await.unwrap_err();
        assert!(matches!(&refused, PublishError::Invalid { why } if why.contains("ACCESS_REFUSED")), "{refused:?}");
        assert!(is_open(&*bench.publish));
    }

    async fn what_cannot_be_written_is_refused_first(node: &'static Node) {
        let bench = Bench::with(Config::new(node.url()).max_message_size(1000)).await;
        let queue = bench.queue().await;
        let refused = bench.send(message(&queue, &"x".repeat(1001))).await;
        assert_eq!(refused, Err(PublishError::TooLarge { size: 1001, limit: 1000 }));
        assert_eq!(bench.send(message(&queue, &"x".repeat(1000))).await, Ok(Routing::Routed));

        // The frame of the headers may have exactly as many bytes as were negotiated.
        let with = |bytes: usize| {
            let headers = Table::from([("h".to_owned(), Value::from("x".repeat(bytes)))]);
            let properties = Properties { message_id: Some("i".to_owned()), headers, ..Properties::default() };
            Outgoing { properties, ..message(&queue, "x") }
        };
        let fits = 131_072 - 22 - 2 - (4 + 2 + 1 + 4);
        assert_eq!(bench.send(with(fits)).await, Ok(Routing::Routed));
        let refused = bench.send(with(fits + 1)).await;
        assert_eq!(refused, Err(PublishError::HeadersTooLarge { size: 131_073, limit: 131_072 }));

        let long = "x".repeat(256);
        let invalid = [
            message(&long, "x"),
            Outgoing { exchange: long.clone(), ..message(&queue, "x") },
            Outgoing {
                properties: Properties { message_id: Some(long.clone()), ..Properties::default() },
                ..message(&queue, "x")
            },
            Outgoing {
                properties: Properties {
                    headers: Table::from([(long.clone(), Value::Void)]),
                    ..Properties::default()
                },
                ..message(&queue, "x")
            },
        ];
        for message in invalid {
            let refused = bench.send(message).await.unwrap_err();
            assert!(matches!(&refused, PublishError::Invalid { why } if why.contains("255")), "{refused:?}");
        }
        assert!(is_open(&*bench.publish));
    }

    async fn the_usual_limit_of_a_body_is_known(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        let limit = if node.version()[0] >= 4 { 16 << 20 } else { 128 << 20 };
        let body = Bytes::from(vec![0; limit + 1]);
        let refused = bench.send(Outgoing { body: body.clone(), ..message(&queue, "") }).await;
        assert_eq!(refused, Err(PublishError::TooLarge { size: limit + 1, limit }));
        let large = Outgoing { body: body.slice(..16 << 20), ..message(&queue, "") };
        let beside = join_all((0..10).map(|_| bench.publish.publish(message(&queue, "x"), Lane::User)));
        let (large, beside) = tokio::join!(bench.send(large), beside);
        assert_eq!(large, Ok(Routing::Routed));
        assert!(beside.iter().all(|answer| *answer == Ok(Routing::Routed)));
        let mut subscription = bench.subscribe(&queue, 11).await;
        let mut bytes = 0;
        for _ in 0..11 {
            bytes += next(&mut subscription).await.body.len();
        }
        assert_eq!(bytes, (16 << 20) + 10);
        Client::connect(&node.url()).await.delete(&queue).await;
    }

    async fn everything_beside_the_body_arrives_as_it_was_sent(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        let text = |text: &str| Some(text.to_owned());
        let properties = Properties {
            content_type: text("application/json"),
            content_encoding: text("gzip"),
            headers: all_types(),
            delivery_mode: Some(1),
            priority: Some(3),
            correlation_id: text("correlation"),
            reply_to: text("answers"),
            expiration: text("600000"),
            message_id: text("ä".repeat(127).as_str()),
            timestamp: Some(1_700_000_000),
            kind: text("kind"),
            user_id: text("guest"),
            app_id: text("app"),
            cluster_id: text("cluster"),
        };
        let sent = Outgoing { properties: properties.clone(), ..message(&queue, "") };
        assert_eq!(bench.send(sent).await, Ok(Routing::Routed));
        let mut with_short = message(&queue, "");
        with_short.properties.headers.insert("short".to_owned(), Value::ShortString("s".to_owned()));
        assert_eq!(bench.send(with_short).await, Ok(Routing::Routed));
        let mut subscription = bench.subscribe(&queue, 2).await;
        assert_eq!(next(&mut subscription).await.properties, properties);
        assert_eq!(next(&mut subscription).await.properties.headers["short"], Value::from("s"));
    }
}
