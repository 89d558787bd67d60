//! How a body becomes a value, and a value a body.

use serde::{Serialize, de::DeserializeOwned};

/// Reads and writes bodies of one format.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a codec",
    label = "a codec implements `acemq::envelope::Codec`, such as `acemq::envelope::Json`"
)]
pub trait Codec {
    /// The content type that a publish writes.
    const CONTENT_TYPE: &'static str;

    /// Whether a body of this content type can be read; `None` is a message that names none.
    fn reads(content_type: Option<&str>) -> bool;

    /// Reads a body.
    ///
    /// # Errors
    /// When the body is not what the type wants.
    fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError>;

    /// Writes a body.
    ///
    /// # Errors
    /// When the value cannot be written in this format.
    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, DecodeError>;
}

/// Why a body cannot be read; the message is parked, unless a retry can help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The body is not what was expected.
    #[error("the body cannot be read: {0}")]
    Malformed(String),
    /// The content type belongs to another format.
    #[error("content type `{found}` is not one that this consumer reads ({expected})")]
    ContentType {
        /// What the message says.
        found: String,
        /// What the codec writes.
        expected: &'static str,
    },
    /// What the body refers to cannot be had now; the delivery is a failed attempt.
    #[error("the body cannot be read now: {0}")]
    Unavailable(String),
}

/// The codec of a consumer or a publisher that names none.
#[cfg(feature = "json")]
pub type DefaultCodec = Json;

/// The codec of a consumer or a publisher that names none: without the `json` feature, it reads nothing.
#[cfg(not(feature = "json"))]
pub type DefaultCodec = NoCodec;

/// JSON, by `serde_json`.
#[cfg(feature = "json")]
#[derive(Debug, Clone, Copy)]
pub struct Json;

#[cfg(feature = "json")]
impl Codec for Json {
    const CONTENT_TYPE: &'static str = "application/json";

    fn reads(content_type: Option<&str>) -> bool {
        let Some(content_type) = content_type else {
            return true;
        };
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        kind.is_empty()
            || kind.starts_with("application/json")
            || kind.starts_with("text/json")
            || (kind.starts_with("application/") && kind.ends_with("+json"))
    }

    fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
        serde_json::from_slice(body).map_err(|error| DecodeError::Malformed(error.to_string()))
    }

    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, DecodeError> {
        serde_json::to_vec(value).map_err(|error| DecodeError::Malformed(error.to_string()))
    }
}

/// Stands in for a codec when no format is compiled in.
#[cfg(not(feature = "json"))]
#[derive(Debug, Clone, Copy)]
pub struct NoCodec;

#[cfg(not(feature = "json"))]
impl Codec for NoCodec {
    const CONTENT_TYPE: &'static str = "application/octet-stream";

    fn reads(_: Option<&str>) -> bool {
        true
    }

    fn decode<T: DeserializeOwned>(_: &[u8]) -> Result<T, DecodeError> {
        Err(DecodeError::Malformed("no codec: turn on the `json` feature of acemq, or name a `codec`".to_owned()))
    }

    fn encode<T: Serialize + ?Sized>(_: &T) -> Result<Vec<u8>, DecodeError> {
        Err(DecodeError::Malformed("no codec: turn on the `json` feature of acemq, or name a codec".to_owned()))
    }
}

#[cfg(all(test, feature = "json"))]
mod tests {
    use super::*;

    #[test]
    fn json_reads_what_the_family_calls_json_and_nothing_else() {
        for (content_type, reads) in [
            (None, true),
            (Some(""), true),
            (Some("application/json"), true),
            (Some("application/json; charset=utf-8"), true),
            (Some("APPLICATION/JSON"), true),
            (Some("text/json"), true),
            (Some("application/vnd.order+json"), true),
            (Some("application/vnd.order+json; v=2"), true),
            (Some("application/xml"), false),
            (Some("text/plain"), false),
            (Some("image/svg+json"), false),
            (Some("application/octet-stream"), false),
        ] {
            assert_eq!(Json::reads(content_type), reads, "{content_type:?}");
        }
    }
}
