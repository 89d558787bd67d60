//! The logical name and the version of a message type.

use super::{Ack, Context, Message, Park, outcome::cut};
use crate::envelope::headers;

/// A message with a logical name and a version; derive it with `#[derive(acemq::Message)]`.
///
/// A publisher writes both into the envelope. A consumer of such a message parks one whose envelope states another type, or
/// a later version than the consumer knows: decoding it would be guesswork, and a retry would not help. Earlier versions are
/// decoded, so fields that came later need a default. A foreign message, which states neither, is decoded.
///
/// # Examples
/// ```
/// # #[cfg(feature = "macros")] {
/// use acemq::MessageType;
///
/// #[derive(serde::Serialize, serde::Deserialize, acemq::Message)]
/// #[message(type = "order.placed", version = 2)]
/// struct OrderPlaced {
///     order_id: String,
/// }
///
/// assert_eq!((OrderPlaced::TYPE, OrderPlaced::VERSION), ("order.placed", 2));
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no logical type",
    note = "put `#[derive(acemq::Message)]` and `#[message(type = \"…\")]` on it"
)]
pub trait MessageType {
    /// The logical name.
    const TYPE: &'static str;
    /// The version of the fields, from 1.
    const VERSION: u32;
}

impl<T: MessageType> MessageType for Message<T> {
    const TYPE: &'static str = T::TYPE;
    const VERSION: u32 = T::VERSION;
}

/// What a consumer expects of the envelope.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    pub(crate) kind: &'static str,
    pub(crate) version: u32,
}

impl Expected {
    /// What becomes of a message that is not what is expected; nothing when it is.
    pub(crate) fn refuse(self, context: &Context) -> Option<Ack> {
        let stated = context.properties().headers.get(headers::TYPE).and_then(|value| value.as_text());
        let reason = match stated {
            Some(kind) if !kind.is_empty() && kind != self.kind => {
                format!("the message is of type `{kind}`, and this consumer takes `{}`", self.kind)
            }
            _ if context.envelope().version() > self.version => format!(
                "the message is version {} of `{}`, and this consumer knows version {} at most",
                context.envelope().version(),
                self.kind,
                self.version
            ),
            _ => return None,
        };
        Some(Ack::Park { reason: cut(reason), cause: Park::Undecodable })
    }
}
