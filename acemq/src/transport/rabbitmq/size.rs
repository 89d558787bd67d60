//! How many bytes a content header takes on the wire.
//!
//! A content header cannot be split over frames, and RabbitMQ closes the whole connection on a frame over the negotiated
//! maximum. So the size is known before anything is written.

use crate::envelope::{Properties, Table, Value};

/// Frame type, channel and length before the payload, and the end mark after it.
const FRAME: usize = 1 + 2 + 4 + 1;
/// Class, weight, size of the body and the flags that say which properties follow.
const FIXED: usize = 2 + 2 + 8 + 2;

/// Bytes of the frame that carries these properties.
pub(super) fn header_frame(properties: &Properties) -> usize {
    let texts = [
        &properties.content_type,
        &properties.content_encoding,
        &properties.correlation_id,
        &properties.reply_to,
        &properties.expiration,
        &properties.message_id,
        &properties.kind,
        &properties.user_id,
        &properties.app_id,
        &properties.cluster_id,
    ];
    let texts: usize = texts.into_iter().flatten().map(|text| 1 + text.len()).sum();
    let headers = if properties.headers.is_empty() { 0 } else { table(&properties.headers) };
    FRAME
        + FIXED
        + texts
        + headers
        + usize::from(properties.delivery_mode.is_some())
        + usize::from(properties.priority.is_some())
        + properties.timestamp.map_or(0, |_| 8)
}

fn table(table: &Table) -> usize {
    4 + table.iter().map(|(name, value)| 1 + name.len() + self::value(value)).sum::<usize>()
}

/// One byte for the type, and the value.
fn value(value: &Value) -> usize {
    1 + match value {
        Value::Void => 0,
        Value::Bool(_) | Value::I8(_) | Value::U8(_) => 1,
        Value::I16(_) | Value::U16(_) => 2,
        Value::I32(_) | Value::U32(_) | Value::F32(_) => 4,
        Value::Decimal { .. } => 5,
        Value::I64(_) | Value::F64(_) | Value::Timestamp(_) => 8,
        Value::LongString(bytes) | Value::Bytes(bytes) => 4 + bytes.len(),
        Value::ShortString(text) => 4 + text.len(),
        Value::Array(values) => 4 + values.iter().map(self::value).sum::<usize>(),
        Value::Table(inner) => table(inner),
    }
}

#[cfg(test)]
mod tests {
    use lapin::types::generation::gen_field_table;
    use proptest::prelude::*;

    use super::*;
    use crate::transport::rabbitmq::convert;

    proptest! {
        #[test]
        fn a_table_has_the_size_that_the_writer_gives_it(properties in convert::tests::properties()) {
            let wire = convert::table_to(&properties.headers).unwrap();
            let mut buffer = vec![0; 1 << 20];
            let context = std::io::Cursor::new(&mut buffer[..]).into();
            let written = gen_field_table(&wire)(context).unwrap().into_inner().1;
            prop_assert_eq!(u64::try_from(table(&properties.headers)).unwrap(), written);
        }
    }

    #[test]
    fn an_empty_header_frame_has_22_bytes() {
        assert_eq!(header_frame(&Properties::default()), 22);
    }

    #[test]
    fn every_property_counts() {
        let properties = Properties {
            content_type: Some("ab".to_owned()),
            delivery_mode: Some(2),
            priority: Some(1),
            timestamp: Some(1),
            ..Properties::default()
        };
        assert_eq!(header_frame(&properties), 22 + 3 + 1 + 1 + 8);
    }
}
