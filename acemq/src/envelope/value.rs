//! Header values and tables, with every type that AMQP 0-9-1 has.

use std::collections::BTreeMap;

use bytes::Bytes;

/// A header table: names in order, each with a typed value.
pub type Table = BTreeMap<String, Value>;

/// One value of a header table, with its exact wire type, so that a copy can be written as it was read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `t`
    Bool(bool),
    /// `b`
    I8(i8),
    /// `B`
    U8(u8),
    /// `s`
    I16(i16),
    /// `u`
    U16(u16),
    /// `I`
    I32(i32),
    /// `i`
    U32(u32),
    /// `l`
    I64(i64),
    /// `f`
    F32(f32),
    /// `d`
    F64(f64),
    /// `D`: `value` divided by ten to the power of `scale`.
    Decimal {
        /// The number of digits after the point.
        scale: u8,
        /// The digits.
        value: u32,
    },
    /// `S`: bytes, by convention UTF-8.
    LongString(Bytes),
    /// A short string: readable, but never written inside a table, since RabbitMQ closes the connection on it.
    ShortString(String),
    /// `A`
    Array(Vec<Value>),
    /// `T`: seconds since 1970.
    Timestamp(u64),
    /// `F`
    Table(Table),
    /// `x`
    Bytes(Bytes),
    /// `V`
    Void,
}

impl Value {
    /// The text of a string or of bytes that are UTF-8; nothing for any other type.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::LongString(bytes) | Self::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            Self::ShortString(text) => Some(text),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::LongString(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::LongString(Bytes::from(text))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::I32(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::I64(value)
    }
}
