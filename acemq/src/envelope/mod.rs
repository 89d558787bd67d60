//! The identity of a message, and how it is read from and written to AMQP properties.

mod codec;
pub mod headers;
mod identity;
mod properties;
mod value;

#[cfg(feature = "json")]
pub use codec::Json;
pub use codec::{Codec, DecodeError, DefaultCodec};
pub use identity::{Envelope, EnvelopeError, Route};
pub(crate) use identity::{count, now_ms};
pub use properties::Properties;
pub use value::{Table, Value};
