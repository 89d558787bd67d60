use super::*;

#[tokio::test]
async fn a_message_goes_where_its_exchange_and_key_lead_and_nowhere_else() {
    let broker = broker(&[
        exchange("direct", ExchangeKind::Direct),
        exchange("fanout", ExchangeKind::Fanout),
        exchange("topic", ExchangeKind::Topic),
        queue("a", []),
        queue("b", []),
        binding("a", "direct", "k"),
        binding("a", "direct", "k"),
        binding("b", "direct", "other"),
        binding("a", "fanout", "x"),
        binding("a", "fanout", "y"),
        binding("b", "fanout", ""),
        binding("a", "topic", "order.#"),
        binding("b", "topic", "order.*"),
    ]);
    let connection = connect(&broker, Role::Publish).await;
    let table = [
        ("", "a", 1, 0),
        ("direct", "k", 1, 0),
        ("direct", "other", 0, 1),
        ("fanout", "whatever", 1, 1),
        ("topic", "order", 1, 0),
        ("topic", "order.placed", 1, 1),
    ];
    for (exchange, key, in_a, in_b) in table {
        let sent = connection.publish(message(exchange, key, "m"), Lane::User);
        assert_eq!(sent.await, Ok(Routing::Routed), "{exchange} {key}");
        let found = (broker.take("a").len(), broker.take("b").len());
        assert_eq!(found, (in_a, in_b), "{exchange} {key}");
    }
}

#[tokio::test]
async fn an_unroutable_message_is_returned_only_if_it_is_mandatory() {
    let broker = broker(&[exchange("x", ExchangeKind::Topic)]);
    let connection = connect(&broker, Role::Publish).await;
    for target in ["", "x"] {
        let mut lost = message(target, "nowhere", "m");
        let returned = Routing::Returned { text: "NO_ROUTE".to_owned() };
        let sent = connection.publish(lost.clone(), Lane::Hop);
        assert_eq!(sent.await, Ok(returned));
        lost.mandatory = false;
        assert_eq!(connection.publish(lost, Lane::Hop).await, Ok(Routing::Routed));
    }
}

#[tokio::test]
async fn a_missing_exchange_is_an_error_and_costs_the_lane_its_confirms() {
    let broker = broker(&[queue("q", [])]);
    let connection = connect(&broker, Role::Publish).await;
    broker.stall_confirms(true);
    let same_lane = connection.publish(message("", "q", "1"), Lane::User);
    let other_lane = connection.publish(message("", "q", "2"), Lane::Hop);
    let failed = connection.publish(message("nope", "q", "3"), Lane::User).await;
    let exchange = "nope".to_owned();
    assert_eq!(failed, Err(PublishError::NoExchange { exchange }));
    assert!(matches!(same_lane.await, Err(PublishError::Unknown { .. })));
    broker.stall_confirms(false);
    assert_eq!(other_lane.await, Ok(Routing::Routed));
    assert_eq!(broker.ready("q"), 2);
}

#[tokio::test]
async fn a_publish_is_handed_over_before_its_future_is_polled() {
    let broker = broker(&[queue("q", [])]);
    let connection = connect(&broker, Role::Publish).await;
    drop(connection.publish(message("", "q", "m"), Lane::User));
    assert_eq!(broker.ready("q"), 1);
}

#[tokio::test]
async fn what_rabbitmq_does_not_take_changes_nothing() {
    let broker = broker(&[queue("q", [])]);
    broker.limit_message_size(3);
    let connection = connect(&broker, Role::Publish).await;
    let size = 4;
    let too_large = connection.publish(message("", "q", "1234"), Lane::User);
    assert_eq!(too_large.await, Err(PublishError::TooLarge { size, limit: 3 }));
    for expiration in ["", "abc", "-1", "+1", "1.5", " 5", "315360000001"] {
        let mut wrong = message("", "q", "m");
        wrong.properties.expiration = Some(expiration.to_owned());
        let refused = connection.publish(wrong, Lane::User).await;
        assert!(matches!(refused, Err(PublishError::Refused { .. })), "{expiration}");
    }
    let mut wrong = message("", "q", "m");
    wrong.properties.headers.insert("CC".to_owned(), "b".into());
    let refused = connection.publish(wrong, Lane::User).await;
    assert!(matches!(refused, Err(PublishError::Refused { .. })));
    assert_eq!(broker.depth("q"), 0);
}

#[tokio::test]
async fn carbon_copies_are_routed_once_and_blind_ones_not_shown() {
    let broker = broker(&[queue("a", []), queue("b", []), queue("d", [])]);
    let mut copied = message("", "a", "m");
    let list = |keys: &[&str]| Value::Array(keys.iter().map(|key| (*key).into()).collect());
    copied.properties.headers =
        Table::from([("CC".to_owned(), list(&["a", "b", "b", "nowhere"])), ("BCC".to_owned(), list(&["d"]))]);
    assert_eq!(broker.publish(copied), Ok(Routing::Routed));
    for queue in ["a", "b", "d"] {
        let messages = broker.take(queue);
        assert_eq!(bodies(&messages), ["m"], "{queue}");
        let headers: Vec<_> = messages[0].properties.headers.keys().collect();
        assert_eq!(headers, ["CC"], "{queue}");
    }
}

#[tokio::test]
async fn a_full_queue_refuses_or_drops_its_oldest_message_as_it_was_declared() {
    let most = || ("x-max-length", Value::I32(2));
    let refuse = || ("x-overflow", Value::from("reject-publish"));
    let quorum = || ("x-queue-type", Value::from("quorum"));
    let broker = broker(&[
        queue("drop", [most()]),
        queue("refuse", [most(), refuse()]),
        queue("drop quorum", [most(), quorum()]),
        queue("refuse quorum", [most(), refuse(), quorum()]),
    ]);
    // A quorum queue takes one more than it says.
    let table = [
        ("drop", [true, true, true, true], ["3", "4"].as_slice()),
        ("refuse", [true, true, false, false], &["1", "2"]),
        ("drop quorum", [true, true, true, true], &["3", "4"]),
        ("refuse quorum", [true, true, true, false], &["1", "2", "3"]),
    ];
    for (queue, taken, left) in table {
        let answers = ["1", "2", "3", "4"].map(|body| broker.publish(message("", queue, body)));
        let expected = taken.map(|taken| if taken { Ok(Routing::Routed) } else { Err(PublishError::Nacked) });
        assert_eq!(answers, expected, "{queue}");
        assert_eq!(bodies(&broker.take(queue)), left, "{queue}");
    }
}

#[tokio::test]
async fn roles_are_kept_apart() {
    let broker = broker(&[queue("q", [])]);
    let consuming = connect(&broker, Role::Consume).await;
    let publishing = connect(&broker, Role::Publish).await;
    let refused = consuming.publish(message("", "q", "m"), Lane::User).await;
    assert!(matches!(refused, Err(PublishError::Refused { .. })));
    let refused = subscribe(&publishing, "q", 1).await.unwrap_err();
    assert!(matches!(refused, DeclareError::Refused { .. }));
}
