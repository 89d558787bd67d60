//! The names of the headers, and how their values are read from whatever type a foreign library wrote.

use super::value::Value;

/// Headers with this prefix belong to the library; an application can neither see nor write one.
pub const RESERVED_PREFIX: &str = "x-acemq-";

/// The message id.
pub const ID: &str = "x-acemq-id";
/// The logical type.
pub const TYPE: &str = "x-acemq-type";
/// The schema version.
pub const VERSION: &str = "x-acemq-version";
/// The correlation id.
pub const CORRELATION: &str = "x-acemq-correlation";
/// The id of the causing message.
pub const CAUSATION: &str = "x-acemq-causation";
/// The delivery that the policy counts.
pub const ATTEMPT: &str = "x-acemq-attempt";
/// Milliseconds since 1970 at the first publish.
pub const FIRST_SEEN: &str = "x-acemq-first-seen";
/// The publishing process.
pub const ORIGIN: &str = "x-acemq-origin";
/// Why a message was set aside.
pub const ERROR: &str = "x-acemq-error";
/// Set by the application, never read by the engine.
pub const CLAIM: &str = "x-acemq-claim";
/// The declared route.
pub const ROUTE: &str = "x-acemq-route";
/// The position in the route.
pub const ROUTE_POSITION: &str = "x-acemq-route-position";
/// The id of the routed flow.
pub const ROUTE_ID: &str = "x-acemq-route-id";

/// Whether a header belongs to the library. The test is the prefix, not the list.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    name.get(..RESERVED_PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(RESERVED_PREFIX))
}

/// A number read from a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// A whole number.
    Whole(i64),
    /// A whole number that does not fit into 64 signed bits.
    Overflow,
    /// No number at all.
    Malformed,
}

/// Reads a number from every type that can hold one: integers of all widths, floats without a fraction, and decimal text.
#[must_use]
pub fn number(value: &Value) -> Number {
    match value {
        Value::I8(number) => Number::Whole(i64::from(*number)),
        Value::U8(number) => Number::Whole(i64::from(*number)),
        Value::I16(number) => Number::Whole(i64::from(*number)),
        Value::U16(number) => Number::Whole(i64::from(*number)),
        Value::I32(number) => Number::Whole(i64::from(*number)),
        Value::U32(number) => Number::Whole(i64::from(*number)),
        Value::I64(number) => Number::Whole(*number),
        Value::F32(number) => from_float(f64::from(*number)),
        Value::F64(number) => from_float(*number),
        Value::Decimal { scale: 0, value } => Number::Whole(i64::from(*value)),
        Value::LongString(_) | Value::ShortString(_) | Value::Bytes(_) => {
            value.as_text().map_or(Number::Malformed, from_text)
        }
        _ => Number::Malformed,
    }
}

fn from_float(number: f64) -> Number {
    if !number.is_finite() || number.fract() != 0.0 {
        return Number::Malformed;
    }
    // Two to the power of 63 is exact as a float; past it lies no i64.
    if number.abs() >= 9_223_372_036_854_775_808.0 {
        return Number::Overflow;
    }
    // Through text, since the language has no checked conversion.
    format!("{number:.0}").parse().map_or(Number::Overflow, Number::Whole)
}

fn from_text(text: &str) -> Number {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Number::Malformed;
    }
    text.parse().map_or(Number::Overflow, Number::Whole)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_number_is_read_from_every_type_that_holds_one() {
        let text = |text: &'static str| Value::LongString(Bytes::from_static(text.as_bytes()));
        for (value, expected) in [
            (Value::I8(-3), Number::Whole(-3)),
            (Value::U8(3), Number::Whole(3)),
            (Value::I16(3), Number::Whole(3)),
            (Value::U16(3), Number::Whole(3)),
            (Value::I32(3), Number::Whole(3)),
            (Value::U32(u32::MAX), Number::Whole(4_294_967_295)),
            (Value::I64(i64::MIN), Number::Whole(i64::MIN)),
            (Value::F32(3.0), Number::Whole(3)),
            (Value::F64(1_700_000_000_123.0), Number::Whole(1_700_000_000_123)),
            (Value::F64(3.5), Number::Malformed),
            (Value::F64(f64::NAN), Number::Malformed),
            (Value::F64(f64::INFINITY), Number::Malformed),
            (Value::F64(1e300), Number::Overflow),
            (Value::Decimal { scale: 0, value: 3 }, Number::Whole(3)),
            (Value::Decimal { scale: 1, value: 30 }, Number::Malformed),
            (text("3"), Number::Whole(3)),
            (text(" 3 "), Number::Whole(3)),
            (text("+3"), Number::Whole(3)),
            (text("-3"), Number::Whole(-3)),
            (text("3.0"), Number::Malformed),
            (text(""), Number::Malformed),
            (text("-"), Number::Malformed),
            (text("99999999999999999999"), Number::Overflow),
            (Value::ShortString("3".to_owned()), Number::Whole(3)),
            (Value::Bytes(Bytes::from_static(b"3")), Number::Whole(3)),
            (Value::Bytes(Bytes::from_static(b"\xff")), Number::Malformed),
            (Value::Bool(true), Number::Malformed),
            (Value::Timestamp(3), Number::Malformed),
            (Value::Array(vec![Value::I32(3)]), Number::Malformed),
            (Value::Table(crate::envelope::Table::new()), Number::Malformed),
            (Value::Void, Number::Malformed),
        ] {
            assert_eq!(number(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn the_whole_prefix_is_reserved_in_any_case() {
        for (name, reserved) in [
            ("x-acemq-id", true),
            ("X-Acemq-Anything", true),
            ("x-acemq-", true),
            ("x-acemq", false),
            ("acemq-replay-count", false),
            ("x-äcemq-id", false),
            ("", false),
        ] {
            assert_eq!(is_reserved(name), reserved, "{name}");
        }
    }
}
