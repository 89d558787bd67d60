use super::*;

type Arguments<'a> = &'a [(&'a str, Value)];

fn with(arguments: &[(&str, Value)]) -> Declaration {
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Declaration::Queue { name: "q".to_owned(), arguments }
}

fn text(text: &'static str) -> Value {
    Value::LongString(Bytes::from_static(text.as_bytes()))
}

const TTL: &str = "x-message-ttl";
const DLX: &str = "x-dead-letter-exchange";
const DLRK: &str = "x-dead-letter-routing-key";
const STRATEGY: &str = "x-dead-letter-strategy";
fn quorum() -> (&'static str, Value) {
    ("x-queue-type", text("quorum"))
}

#[test]
fn declaring_again_with_the_same_meaning_is_nothing_new() {
    let table: [(Arguments<'_>, Arguments<'_>); 5] = [
        (&[], &[]),
        (&[], &[("x-queue-type", text("classic"))]),
        (&[("x-queue-type", text("classic"))], &[]),
        (&[(TTL, Value::I32(1000))], &[(TTL, Value::I64(1000))]),
        (&[(TTL, Value::U8(5))], &[(TTL, Value::I16(5)), ("foreign", Value::Bool(true))]),
    ];
    for (first, second) in table {
        let broker = broker(&[with(first)]);
        fill(&broker, "q", &["1"]);
        assert_eq!(broker.declare(&with(second)), Ok(()), "{first:?} {second:?}");
        assert_eq!(broker.ready("q"), 1);
        assert_eq!(broker.declarations(), [with(first)]);
    }
}

#[test]
fn a_difference_is_told_in_the_words_of_rabbitmq() {
    const ONE: (&str, Value) = (TTL, Value::I32(1000));
    let table: [(Arguments<'_>, Arguments<'_>, &str); 11] = [
        (&[ONE], &[(TTL, Value::I64(5000))], "'x-message-ttl' […] received '5000' but current is '1000'"),
        (&[ONE], &[(TTL, text("1000"))], ""),
        (&[ONE], &[], "'x-message-ttl' […] received none but current is the value '1000' of type 'signedint'"),
        (
            &[],
            &[(TTL, Value::I64(5000))],
            "'x-message-ttl' […] received the value '5000' of type 'long' but current is none",
        ),
        (
            &[(DLX, text("a"))],
            &[],
            "'x-dead-letter-exchange' […] received none but current is the value 'a' of type 'longstr'",
        ),
        (&[(DLX, text("a"))], &[(DLX, text("b"))], "'x-dead-letter-exchange' […] received 'b' but current is 'a'"),
        (&[], &[quorum()], "'x-queue-type' […] received 'quorum' but current is 'classic'"),
        (&[quorum()], &[], "'x-queue-type' […] received 'classic' but current is 'quorum'"),
        (
            &[],
            &[("x-overflow", text("drop-head"))],
            "'x-overflow' […] received the value 'drop-head' of type 'longstr' but current is none",
        ),
        (
            &[quorum()],
            &[quorum(), ("x-delivery-limit", Value::I32(4))],
            "'x-delivery-limit' […] received the value '4' of type 'signedint' but current is none",
        ),
        // Of several differences RabbitMQ names the first of its own list.
        (
            &[ONE, (DLX, text("a"))],
            &[quorum(), (DLX, text("b")), (TTL, Value::I32(2))],
            "'x-message-ttl' […] received '2' but current is '1000'",
        ),
    ];
    for (first, second, difference) in table {
        let object = "queue `q`".to_owned();
        let expected = if difference.is_empty() {
            // Refused for what it is, before it is compared.
            let why = "invalid arg 'x-message-ttl' for queue 'q' in vhost '/': \"expected integer, got longstr\"";
            DeclareError::Refused { object, text: format!("PRECONDITION_FAILED - {why}") }
        } else {
            let difference = difference.replace("[…]", "for queue 'q' in vhost '/':");
            DeclareError::Mismatch { object, text: format!("PRECONDITION_FAILED - inequivalent arg {difference}") }
        };
        let broker = broker(&[with(first)]);
        assert_eq!(broker.declare(&with(second)), Err(expected), "{first:?} {second:?}");
        assert_eq!(broker.declarations(), [with(first)]);
    }
}

#[test]
fn what_cannot_be_had_is_refused_and_not_ignored() {
    const LIMIT: &str = "x-delivery-limit";
    let table: [(Arguments<'_>, &str); 20] = [
        (&[(TTL, Value::I32(-1))], "{value_negative,-1}"),
        (&[(TTL, Value::I64(315_360_000_001))], "{value_too_large,315360000001}"),
        (&[(TTL, Value::Bool(true))], "\"expected integer, got bool\""),
        (&[("x-max-length", Value::I32(-1))], "{value_negative,-1}"),
        (&[("x-overflow", text("nope"))], "invalid_overflow"),
        (&[("x-overflow", Value::I32(1))], "{unacceptable_type,signedint}"),
        (&[("x-overflow", text("reject-publish-dlx"))], "does not support `x-overflow: reject-publish-dlx`"),
        (&[(DLRK, text("k"))], "routing_key_but_no_dlx_defined"),
        (&[(DLX, Value::I32(1))], "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q'"),
        (&[(DLX, text("x")), (STRATEGY, text("at-most-once"))], "of queue type rabbit_classic_queue"),
        (&[quorum(), (STRATEGY, text("foo"))], "invalid_dlx_strategy"),
        (&[("x-queue-type", text("foo"))], "\"unsupported queue type 'foo'\""),
        (&[("x-queue-type", Value::Void)], "{unacceptable_type,void}"),
        (&[("x-queue-type", text("stream"))], "does not support `x-queue-type: stream`"),
        (&[(LIMIT, Value::I32(3))], "of queue type rabbit_classic_queue"),
        (&[quorum(), (LIMIT, text("3"))], "\"expected integer, got longstr\""),
        (&[("x-max-priority", Value::I32(5))], "does not support `x-max-priority`"),
        (&[("x-single-active-consumer", Value::Bool(true))], "does not support `x-single-active-consumer`"),
        (&[("x-expires", Value::I32(1000))], "does not support `x-expires`"),
        (&[("x-max-length-bytes", Value::I32(1000))], "does not support `x-max-length-bytes`"),
    ];
    for (arguments, why) in table {
        let broker = broker(&[]);
        match broker.declare(&with(arguments)) {
            Err(DeclareError::Refused { text, .. }) => assert!(text.contains(why), "{text}"),
            other => panic!("{arguments:?}: {other:?}"),
        }
        assert!(!broker.view(|view| view.exists("q")));
    }
}

#[test]
fn exchanges_and_bindings_are_checked_like_queues() {
    let broker = broker(&[exchange("x", ExchangeKind::Direct), queue("q", [])]);
    let missing = |object: &str| Err(DeclareError::Missing { object: object.to_owned() });
    let denied = |object: &str, why: &str| {
        Err(DeclareError::Denied { object: object.to_owned(), text: format!("ACCESS_REFUSED - {why}") })
    };
    let default = "operation not permitted on the default exchange";
    let too_long = "n".repeat(256);
    let too_long = || too_long.as_str();
    let bytes = "256 bytes are over the 255 of AMQP";
    let table = [
        (exchange("x", ExchangeKind::Direct), Ok(())),
        (
            exchange("x", ExchangeKind::Topic),
            Err(DeclareError::Mismatch {
                object: "exchange `x`".to_owned(),
                text: "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': received 'topic' \
                       but current is 'direct'"
                    .to_owned(),
            }),
        ),
        (exchange("amq.topic", ExchangeKind::Topic), Ok(())),
        (exchange("", ExchangeKind::Direct), denied("exchange ``", default)),
        (
            exchange("amq.mine", ExchangeKind::Direct),
            denied("exchange `amq.mine`", "exchange name 'amq.mine' contains reserved prefix 'amq.*'"),
        ),
        (queue("amq.mine", []), denied("queue `amq.mine`", "queue name 'amq.mine' contains reserved prefix 'amq.*'")),
        (binding("q", "x", ""), Ok(())),
        (binding("q", "nope", "k"), missing("exchange `nope`")),
        (binding("nope", "x", "k"), missing("queue `nope`")),
        (binding("nope", "neither", "k"), missing("exchange `neither`")),
        (binding("q", "", "k"), denied("binding of queue `q` to exchange `` on `k`", default)),
        (Declaration::QueueExists { name: "q".to_owned() }, Ok(())),
        (Declaration::QueueExists { name: "nope".to_owned() }, missing("queue `nope`")),
        (
            queue(too_long(), []),
            Err(DeclareError::Refused { object: format!("queue `{}`", too_long()), text: bytes.to_owned() }),
        ),
    ];
    for (wanted, expected) in table {
        assert_eq!(broker.declare(&wanted), expected, "{wanted:?}");
    }
    assert!(matches!(broker.declare(&queue("", [])), Err(DeclareError::Refused { .. })));
    let declared = [exchange("x", ExchangeKind::Direct), queue("q", []), binding("q", "x", "")];
    assert_eq!(broker.declarations(), declared);
}
