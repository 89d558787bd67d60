//! Between acemq's messages and lapin's, without losing a type.

use bytes::Bytes;
use lapin::{
    BasicProperties,
    message::Delivery,
    types::{AMQPValue, ByteArray, DecimalValue, FieldArray, FieldTable, LongString, ShortString},
};

use crate::{
    envelope::{Properties, Table, Value},
    transport::Incoming,
};

/// A text that does not fit into an AMQP short string, which has at most 255 bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} has {bytes} bytes and AMQP allows 255")]
pub(super) struct TooLong {
    /// What it is.
    pub(super) what: &'static str,
    /// Its length.
    pub(super) bytes: usize,
}

/// A short string, or the complaint that names what it was to be.
pub(super) fn short(text: &str, what: &'static str) -> Result<ShortString, TooLong> {
    ShortString::try_new(text).map_err(|_| TooLong { what, bytes: text.len() })
}

/// What the engine gets of a delivery. The body is moved, not copied.
pub(super) fn incoming(delivery: Delivery) -> Incoming {
    Incoming {
        tag: delivery.delivery_tag,
        exchange: delivery.exchange.into(),
        routing_key: delivery.routing_key.into(),
        redelivered: delivery.redelivered,
        properties: properties_from(&delivery.properties),
        body: Bytes::from(delivery.data),
    }
}

/// Properties as they came.
pub(super) fn properties_from(lapin: &BasicProperties) -> Properties {
    fn text(short: Option<&ShortString>) -> Option<String> {
        short.map(|short| short.as_str().to_owned())
    }
    Properties {
        content_type: text(lapin.content_type().as_ref()),
        content_encoding: text(lapin.content_encoding().as_ref()),
        headers: lapin.headers().as_ref().map(table_from).unwrap_or_default(),
        delivery_mode: *lapin.delivery_mode(),
        priority: *lapin.priority(),
        correlation_id: text(lapin.correlation_id().as_ref()),
        reply_to: text(lapin.reply_to().as_ref()),
        expiration: text(lapin.expiration().as_ref()),
        message_id: text(lapin.message_id().as_ref()),
        timestamp: *lapin.timestamp(),
        kind: text(lapin.kind().as_ref()),
        user_id: text(lapin.user_id().as_ref()),
        app_id: text(lapin.app_id().as_ref()),
        cluster_id: text(lapin.cluster_id().as_ref()),
    }
}

/// Properties as they are sent; an empty header table is left out.
pub(super) fn properties_to(properties: &Properties) -> Result<BasicProperties, TooLong> {
    let mut lapin = BasicProperties::default();
    macro_rules! text {
        ($($field:ident $with:ident $what:literal,)*) => {$(
            if let Some(text) = &properties.$field {
                lapin = lapin.$with(short(text, $what)?);
            }
        )*};
    }
    text! {
        content_type with_content_type "content type",
        content_encoding with_content_encoding "content encoding",
        correlation_id with_correlation_id "correlation id",
        reply_to with_reply_to "reply-to address",
        expiration with_expiration "expiration",
        message_id with_message_id "message id",
        kind with_type "type property",
        user_id with_user_id "user id",
        app_id with_app_id "application id",
        cluster_id with_cluster_id "cluster id",
    }
    if !properties.headers.is_empty() {
        lapin = lapin.with_headers(table_to(&properties.headers)?);
    }
    if let Some(mode) = properties.delivery_mode {
        lapin = lapin.with_delivery_mode(mode);
    }
    if let Some(priority) = properties.priority {
        lapin = lapin.with_priority(priority);
    }
    if let Some(timestamp) = properties.timestamp {
        lapin = lapin.with_timestamp(timestamp);
    }
    Ok(lapin)
}

/// A table as it came.
pub(super) fn table_from(lapin: &FieldTable) -> Table {
    lapin.into_iter().map(|(name, value)| (name.as_str().to_owned(), value_from(value))).collect()
}

/// A table as it is sent.
pub(super) fn table_to(table: &Table) -> Result<FieldTable, TooLong> {
    let mut lapin = FieldTable::default();
    for (name, value) in table {
        lapin.insert(short(name, "header name")?, value_to(value)?);
    }
    Ok(lapin)
}

fn value_from(lapin: &AMQPValue) -> Value {
    match lapin {
        AMQPValue::Boolean(v) => Value::Bool(*v),
        AMQPValue::ShortShortInt(v) => Value::I8(*v),
        AMQPValue::ShortShortUInt(v) => Value::U8(*v),
        AMQPValue::ShortInt(v) => Value::I16(*v),
        AMQPValue::ShortUInt(v) => Value::U16(*v),
        AMQPValue::LongInt(v) => Value::I32(*v),
        AMQPValue::LongUInt(v) => Value::U32(*v),
        AMQPValue::LongLongInt(v) => Value::I64(*v),
        AMQPValue::Float(v) => Value::F32(*v),
        AMQPValue::Double(v) => Value::F64(*v),
        AMQPValue::DecimalValue(DecimalValue { scale, value }) => Value::Decimal { scale: *scale, value: *value },
        AMQPValue::ShortString(v) => Value::ShortString(v.as_str().to_owned()),
        AMQPValue::LongString(v) => Value::LongString(Bytes::copy_from_slice(v.as_bytes())),
        AMQPValue::FieldArray(v) => Value::Array(v.as_slice().iter().map(value_from).collect()),
        AMQPValue::Timestamp(v) => Value::Timestamp(*v),
        AMQPValue::FieldTable(v) => Value::Table(table_from(v)),
        AMQPValue::ByteArray(v) => Value::Bytes(Bytes::copy_from_slice(v.as_slice())),
        AMQPValue::Void => Value::Void,
    }
}

fn value_to(value: &Value) -> Result<AMQPValue, TooLong> {
    Ok(match value {
        Value::Bool(v) => AMQPValue::Boolean(*v),
        Value::I8(v) => AMQPValue::ShortShortInt(*v),
        Value::U8(v) => AMQPValue::ShortShortUInt(*v),
        Value::I16(v) => AMQPValue::ShortInt(*v),
        Value::U16(v) => AMQPValue::ShortUInt(*v),
        Value::I32(v) => AMQPValue::LongInt(*v),
        Value::U32(v) => AMQPValue::LongUInt(*v),
        Value::I64(v) => AMQPValue::LongLongInt(*v),
        Value::F32(v) => AMQPValue::Float(*v),
        Value::F64(v) => AMQPValue::Double(*v),
        Value::Decimal { scale, value } => AMQPValue::DecimalValue(DecimalValue { scale: *scale, value: *value }),
        // RabbitMQ has no short strings inside tables: it closes the whole connection on one.
        Value::ShortString(v) => AMQPValue::LongString(LongString::from(v.as_bytes())),
        Value::LongString(v) => AMQPValue::LongString(LongString::from(v.as_ref())),
        Value::Array(v) => {
            AMQPValue::FieldArray(FieldArray::from(v.iter().map(value_to).collect::<Result<Vec<_>, _>>()?))
        }
        Value::Timestamp(v) => AMQPValue::Timestamp(*v),
        Value::Table(v) => AMQPValue::FieldTable(table_to(v)?),
        Value::Bytes(v) => AMQPValue::ByteArray(ByteArray::from(v.as_ref())),
        Value::Void => AMQPValue::Void,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::{collection, option, prelude::*};

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i8>().prop_map(Value::I8),
            any::<u8>().prop_map(Value::U8),
            any::<i16>().prop_map(Value::I16),
            any::<u16>().prop_map(Value::U16),
            any::<i32>().prop_map(Value::I32),
            any::<u32>().prop_map(Value::U32),
            any::<i64>().prop_map(Value::I64),
            // `NaN` is not equal to itself, so that it would say nothing here.
            any::<f32>().prop_filter("NaN", |v| !v.is_nan()).prop_map(Value::F32),
            any::<f64>().prop_filter("NaN", |v| !v.is_nan()).prop_map(Value::F64),
            any::<(u8, u32)>().prop_map(|(scale, value)| Value::Decimal { scale, value }),
            collection::vec(any::<u8>(), 0..40).prop_map(|v| Value::LongString(v.into())),
            any::<u64>().prop_map(Value::Timestamp),
            collection::vec(any::<u8>(), 0..40).prop_map(|v| Value::Bytes(v.into())),
            Just(Value::Void),
        ];
        scalar.prop_recursive(3, 24, 6, |inner| {
            prop_oneof![
                collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                collection::btree_map(".{0,12}", inner, 0..6).prop_map(Value::Table),
            ]
        })
    }

    fn text() -> impl Strategy<Value = Option<String>> {
        option::of(".{0,20}")
    }

    pub(in super::super) fn properties() -> impl Strategy<Value = Properties> {
        let texts = (text(), text(), text(), text(), text());
        let more = (text(), text(), text(), text(), text());
        let rest = (any::<Option<u8>>(), any::<Option<u8>>(), any::<Option<u64>>());
        let headers = collection::btree_map(".{0,20}", value(), 0..8);
        (texts, more, rest, headers).prop_map(|(a, b, c, headers)| Properties {
            content_type: a.0,
            content_encoding: a.1,
            headers,
            delivery_mode: c.0,
            priority: c.1,
            correlation_id: a.2,
            reply_to: a.3,
            expiration: a.4,
            message_id: b.0,
            timestamp: c.2,
            kind: b.1,
            user_id: b.2,
            app_id: b.3,
            cluster_id: b.4,
        })
    }

    proptest! {
        #[test]
        fn properties_come_back_as_they_went(sent in properties()) {
            let wire = properties_to(&sent).unwrap();
            prop_assert_eq!(properties_from(&wire), sent);
        }
    }

    #[test]
    fn a_short_string_in_a_table_is_sent_as_a_long_one_at_every_depth() {
        let short = || Value::ShortString("x".to_owned());
        let long = || Value::from("x");
        let wrap = |value: fn() -> Value| {
            let inner = Table::from([("k".to_owned(), value())]);
            Table::from([("a".to_owned(), value()), ("b".to_owned(), Value::Array(vec![value(), Value::Table(inner)]))])
        };
        let wire = table_to(&wrap(short)).unwrap();
        assert_eq!(table_from(&wire), wrap(long));
    }

    #[test]
    fn a_text_over_255_bytes_is_refused_by_its_name() {
        let long = "ä".repeat(128);
        let properties = Properties { message_id: Some(long.clone()), ..Properties::default() };
        let refused = properties_to(&properties).unwrap_err();
        assert_eq!(refused.to_string(), "the message id has 256 bytes and AMQP allows 255");
        let table = Table::from([(long, Value::Void)]);
        assert_eq!(table_to(&table).unwrap_err().what, "header name");
        assert!(short(&"x".repeat(255), "routing key").is_ok());
    }
}
