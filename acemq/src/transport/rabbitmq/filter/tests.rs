use lapin::{
    BasicProperties,
    protocol::basic::{gen_properties, parse_properties},
    types::{AMQPValue, FieldArray, FieldTable},
};
use proptest::{collection, prelude::*};

use super::*;
use crate::transport::rabbitmq::convert;

fn filter() -> (Filter, Arc<OnceLock<Greeting>>) {
    let greeting = Arc::new(OnceLock::new());
    (Filter::new(Arc::clone(&greeting)), greeting)
}

/// What comes out when the bytes come in pieces of these sizes.
fn through(bytes: &[u8], pieces: &[usize]) -> Vec<u8> {
    let mut filter = filter().0;
    let mut output = Vec::new();
    let mut rest = bytes;
    let mut out = [0; 1000];
    for piece in pieces.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        rest = later;
        if filter.passing() >= now.len() {
            output.extend_from_slice(now);
            filter.passed(now.len());
            continue;
        }
        filter.space()[..now.len()].copy_from_slice(now);
        filter.filled(now.len());
        loop {
            match filter.take(&mut out) {
                0 => break,
                taken => output.extend_from_slice(&out[..taken]),
            }
        }
    }
    output
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    [&[kind, 0, 1][..], &length.to_be_bytes(), payload, &[0xce]].concat()
}

fn short(text: &[u8]) -> Vec<u8> {
    [&[u8::try_from(text.len()).unwrap()], text].concat()
}

fn long(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

fn written(properties: &BasicProperties) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 20];
    let context = std::io::Cursor::new(&mut buffer[..]).into();
    let length = gen_properties(properties)(context).unwrap().into_inner().1;
    buffer.truncate(usize::try_from(length).unwrap());
    buffer
}

fn header_frame(properties: &[u8]) -> Vec<u8> {
    frame(HEADER, &[&[0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5][..], properties].concat())
}

/// What lapin reads from a header frame that went through.
fn read(properties: &[u8]) -> BasicProperties {
    let output = through(&header_frame(properties), &[7, 100]);
    let properties = &output[7 + 12..output.len() - 1];
    parse_properties(properties).expect("lapin reads it").1
}

proptest! {
    #[test]
    fn what_is_sound_goes_through_unchanged(
        messages in collection::vec((convert::tests::properties(), collection::vec(any::<u8>(), 0..400)), 1..6),
        pieces in collection::vec(1_usize..300, 1..20),
    ) {
        let mut bytes = Vec::new();
        for (properties, body) in &messages {
            let deliver = [&[0, 60, 0, 60][..], &short(b"tag"), &[0; 9], &short(b""), &short("ä".as_bytes())].concat();
            bytes.extend(frame(METHOD, &deliver));
            bytes.extend(header_frame(&written(&convert::properties_to(properties).unwrap())));
            bytes.extend(frame(3, body));
            bytes.extend(frame(8, &[]));
        }
        prop_assert_eq!(through(&bytes, &pieces), bytes);
    }

    #[test]
    fn nothing_makes_it_panic_or_change_a_length(
        bytes in collection::vec(any::<u8>(), 0..600),
        kind in 0_u8..4,
        pieces in collection::vec(1_usize..300, 1..20),
    ) {
        let bytes = frame(kind, &bytes);
        let output = through(&bytes, &pieces);
        prop_assert_eq!(output.len(), bytes.len());
    }
}

#[test]
fn a_property_that_is_not_utf_8_is_mended() {
    // The flag of the message id, and of the headers.
    let id = [&[0, 0x80][..], &short(b"caf\xe9 \xc3\xa4\xc3")].concat();
    assert_eq!(read(&id).message_id().as_ref().unwrap().as_str(), "caf? ä?");
    let table = [&short(b"na\xefve")[..], b"t\x01"].concat();
    let headers = read(&[&[0x20, 0][..], &long(&table)].concat());
    assert!(headers.headers().as_ref().unwrap().contains_key("na?ve"));
}

#[test]
fn a_routing_key_and_a_reason_that_are_not_utf_8_are_mended() {
    let deliver = |key: &[u8]| {
        let parts = [&[0, 60, 0, 60][..], &short(b"tag"), &[0; 9], &short(b"e"), &short(key)];
        frame(METHOD, &parts.concat())
    };
    assert_eq!(through(&deliver(b"k\xff"), &[3]), deliver(b"k?"));
    let close = |text: &[u8]| frame(METHOD, &[&[0, 20, 0, 40, 1, 148][..], &short(text), &[0; 4]].concat());
    assert_eq!(through(&close(b"no queue '\xc3"), &[3]), close(b"no queue '?"));
}

#[test]
fn what_is_nested_too_deep_becomes_bytes() {
    for (kind, inner) in [(b'A', Vec::new()), (b'F', short(b"k"))] {
        let mut value = b"V".to_vec();
        for _ in 0..5000 {
            value = [&[kind][..], &long(&[&inner[..], &value].concat())].concat();
        }
        let table = [&short(b"deep")[..], &value].concat();
        let read = read(&[&[0x20, 0][..], &long(&table)].concat());
        let mut value = &read.headers().as_ref().unwrap().inner()["deep"];
        let mut depth = 0;
        loop {
            value = match value {
                AMQPValue::FieldArray(array) => &array.as_slice()[0],
                AMQPValue::FieldTable(table) => &table.inner()["k"],
                other => {
                    assert!(matches!(other, AMQPValue::ByteArray(_)), "{other:?}");
                    break;
                }
            };
            depth += 1;
        }
        assert_eq!(depth, 32);
    }
}

#[test]
fn what_is_nested_moderately_stays() {
    let mut value = AMQPValue::Boolean(true);
    for _ in 0..16 {
        value = AMQPValue::FieldArray(FieldArray::from(vec![value]));
        let mut table = FieldTable::default();
        table.insert("k".into(), value);
        value = AMQPValue::FieldTable(table);
    }
    let mut headers = FieldTable::default();
    headers.insert("h".into(), value);
    let sent = BasicProperties::default().with_headers(headers);
    assert_eq!(read(&written(&sent)), sent);
}

#[test]
fn the_greeting_is_heard() {
    let properties = [
        &short(b"capabilities")[..],
        b"F",
        &long(&[&short(b"basic.nack")[..], b"t\x01"].concat()),
        &short(b"product"),
        b"S",
        &long(b"RabbitMQ"),
        &short(b"version"),
        b"S",
        &long(b"4.3.6"),
    ]
    .concat();
    let start = [&[0, 10, 0, 10, 0, 9][..], &long(&properties), &long(b"PLAIN"), &long(b"en_US")].concat();
    let bytes = frame(METHOD, &start);
    let (mut filter, greeting) = filter();
    filter.space()[..bytes.len()].copy_from_slice(&bytes);
    filter.filled(bytes.len());
    let expected = Greeting { product: "RabbitMQ".to_owned(), version: "4.3.6".to_owned() };
    assert_eq!(greeting.get(), Some(&expected));
}
