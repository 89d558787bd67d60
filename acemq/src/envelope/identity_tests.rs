use bytes::Bytes;

use super::*;

fn properties(headers: &[(&str, Value)]) -> Properties {
    Properties {
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        ..Properties::default()
    }
}

#[test]
fn a_minimal_publish_has_exactly_the_headers_of_the_contract() {
    let envelope = Envelope::new("order.placed").with_origin("shop@host");
    let mut written = Properties::default();
    envelope.write(&mut written);
    let names: Vec<&str> = written.headers.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "x-acemq-attempt",
            "x-acemq-correlation",
            "x-acemq-first-seen",
            "x-acemq-id",
            "x-acemq-origin",
            "x-acemq-type",
            "x-acemq-version"
        ]
    );
    let id = written.message_id.as_deref().unwrap();
    assert_eq!(written.headers["x-acemq-id"], Value::from(id));
    assert_eq!(written.headers["x-acemq-correlation"], Value::from(id));
    assert_eq!(written.headers["x-acemq-attempt"], Value::I32(1));
    assert_eq!(written.headers["x-acemq-version"], Value::I32(1));
    assert!(matches!(written.headers["x-acemq-first-seen"], Value::I64(ms) if ms > 1_700_000_000_000));
    assert_eq!(uuid::Uuid::parse_str(id).unwrap().get_version_num(), 4);
    assert_eq!(id, id.to_lowercase());
}

#[test]
fn what_is_written_is_read_again() {
    let cause = Envelope::new("order.placed").with_correlation("flow-1");
    let envelope = cause.causing("order.packed").with_version(3).unwrap().with_claim("mine").next_attempt();
    let mut written = Properties::default();
    envelope.write(&mut written);
    let read = Envelope::read(&written, "some.key").unwrap();
    assert_eq!(read, envelope);
    assert_eq!(read.causation(), cause.id());
    assert_eq!(read.correlation(), Some("flow-1"));
    assert_eq!((read.version(), read.attempt(), read.claim()), (3, 2, Some("mine")));
}

#[test]
fn a_foreign_message_is_a_first_attempt_named_after_its_routing_key() {
    let read = Envelope::read(&Properties::default(), "order.placed").unwrap();
    assert_eq!((read.kind(), read.attempt(), read.version()), ("order.placed", 1, 1));
    assert_eq!((read.id(), read.correlation(), read.first_seen()), (None, None, None));

    let with_id = Properties { message_id: Some("m-1".to_owned()), ..Properties::default() };
    let read = Envelope::read(&with_id, "k").unwrap();
    assert_eq!((read.id(), read.correlation()), (Some("m-1"), Some("m-1")));
}

#[test]
fn empty_text_counts_as_absent() {
    let read = Envelope::read(
        &properties(&[
            ("x-acemq-id", Value::from("")),
            ("x-acemq-type", Value::from("")),
            ("x-acemq-correlation", Value::from("")),
            ("x-acemq-origin", Value::LongString(Bytes::new())),
        ]),
        "key",
    )
    .unwrap();
    assert_eq!((read.id(), read.kind(), read.correlation(), read.origin()), (None, "key", None, None));
}

#[test]
fn an_attempt_is_read_from_every_type_and_a_senseless_one_is_poison() {
    for (value, expected) in [
        (Value::I32(3), Some(3)),
        (Value::U8(3), Some(3)),
        (Value::F64(3.0), Some(3)),
        (Value::from("3"), Some(3)),
        (Value::Bytes(Bytes::from_static(b"3")), Some(3)),
        (Value::I32(0), Some(1)),
        (Value::Bool(true), Some(1)),
        (Value::Void, Some(1)),
        (Value::from("three"), Some(1)),
        (Value::I32(-1), None),
        (Value::I64(i64::MIN), None),
        (Value::I64(1 << 40), None),
        (Value::U32(u32::MAX), None),
        (Value::F64(1e300), None),
        (Value::from("99999999999999999999"), None),
    ] {
        let read = Envelope::read(&properties(&[("x-acemq-attempt", value.clone())]), "k");
        assert_eq!(read.ok().map(|envelope| envelope.attempt()), expected, "{value:?}");
    }
}

#[test]
fn an_unknown_first_publish_has_no_age_and_a_future_one_is_young() {
    let now = UNIX_EPOCH + Duration::from_secs(1_000);
    for (value, age) in [
        (Value::I64(400_000), Some(600)),
        (Value::from("400000"), Some(600)),
        (Value::I64(9_000_000), Some(0)),
        (Value::I64(-5), None),
        (Value::from("yesterday"), None),
    ] {
        let read = Envelope::read(&properties(&[("x-acemq-first-seen", value.clone())]), "k").unwrap();
        assert_eq!(read.age(now).map(|age| age.as_secs()), age, "{value:?}");
    }
}

#[test]
fn building_is_strict() {
    assert_eq!(Envelope::new("t").with_version(0), Err(EnvelopeError::Version));
}
