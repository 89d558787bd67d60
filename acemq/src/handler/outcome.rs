//! What a consumer function says about its message.

use std::{borrow::Cow, error::Error, fmt, panic::AssertUnwindSafe, time::Duration};

use super::classify::{Class, class};
use crate::envelope::DecodeError;

/// The longest text of a failure that is kept, in bytes: it travels in a header, and headers have to fit into one frame.
pub const LONGEST_REASON: usize = 4_096;

/// What becomes of a message, in the words of its consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ack {
    /// Handled: the broker forgets it.
    Accept,
    /// Failed: tried again as the policy says, or dead-lettered once the policy gives up.
    Retry {
        /// Why.
        reason: String,
        /// The wait, in place of the policy's.
        after: Option<Duration>,
    },
    /// Not to be tried again: it goes to the dead-letter queue.
    DeadLetter {
        /// Why.
        reason: String,
        /// Whether an error decided it, or the consumer.
        cause: DeadLetter,
    },
    /// Set aside for a person: it goes to the parking queue.
    Park {
        /// Why.
        reason: String,
        /// Whether the body could be read at all.
        cause: Park,
    },
    /// Back to the queue, as if it had not been delivered.
    Release,
}

/// Who decided that a message is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeadLetter {
    /// The consumer rejected it.
    Rejected,
    /// An error that says that no retry can help.
    Fatal,
}

/// Why a message is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Park {
    /// The consumer asked for it.
    Asked,
    /// The body does not decode.
    Undecodable,
    /// The headers make no sense, such as a negative attempt.
    Poison,
}

impl Ack {
    /// Handled.
    #[must_use]
    pub const fn accept() -> Self {
        Self::Accept
    }

    /// Failed; the policy decides what follows.
    #[must_use]
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::Retry { reason: cut(reason.into()), after: None }
    }

    /// Failed; the next try comes after this wait, if the policy allows one.
    #[must_use]
    pub fn retry_after(reason: impl Into<String>, after: Duration) -> Self {
        Self::Retry { reason: cut(reason.into()), after: Some(after) }
    }

    /// Never to be tried again: to the dead-letter queue.
    #[must_use]
    pub fn dead_letter(reason: impl Into<String>) -> Self {
        Self::DeadLetter { reason: cut(reason.into()), cause: DeadLetter::Rejected }
    }

    /// For a person to look at: to the parking queue.
    #[must_use]
    pub fn park(reason: impl Into<String>) -> Self {
        Self::Park { reason: cut(reason.into()), cause: Park::Asked }
    }

    /// Headers that make no sense: to the parking queue.
    pub(crate) fn poison(reason: String) -> Self {
        Self::Park { reason: cut(reason), cause: Park::Poison }
    }

    /// What a body that cannot be read becomes: parked, or tried again when that can help.
    pub(crate) fn undecodable(error: &DecodeError) -> Self {
        match error {
            DecodeError::Unavailable(_) => Self::retry(error.to_string()),
            _ => Self::Park { reason: cut(error.to_string()), cause: Park::Undecodable },
        }
    }

    /// Back to the queue, with the attempt unchanged.
    #[must_use]
    pub const fn release() -> Self {
        Self::Release
    }
}

/// What a consumer function may return.
#[diagnostic::on_unimplemented(
    message = "a consumer cannot return `{Self}`",
    label = "return `()`, `Ack`, or a `Result` of either",
    note = "the error of a `Result` must convert into `Box<dyn std::error::Error + Send + Sync>`"
)]
pub trait IntoAck {
    /// The value as a decision.
    fn into_ack(self) -> Ack;
}

impl IntoAck for () {
    fn into_ack(self) -> Ack {
        Ack::Accept
    }
}

impl IntoAck for Ack {
    fn into_ack(self) -> Ack {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> IntoAck for Result<(), E> {
    fn into_ack(self) -> Ack {
        self.map_or_else(|error| failed(&*error.into()), |()| Ack::Accept)
    }
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> IntoAck for Result<Ack, E> {
    fn into_ack(self) -> Ack {
        match self {
            // Fatal anywhere beats a returned retry, and an error beats what would have been returned.
            Ok(ack) => ack,
            Err(error) => failed(&*error.into()),
        }
    }
}

/// Any error, boxed.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What a failed handler's error asks for, by what it and its sources say they mean; an ordinary failure is retried.
pub(crate) fn failed(error: &(dyn Error + 'static)) -> Ack {
    let reason = describe(error);
    match class(error) {
        Some(Class::Fatal) => Ack::DeadLetter { reason, cause: DeadLetter::Fatal },
        Some(Class::Park) => Ack::Park { reason, cause: Park::Asked },
        Some(Class::Retry { after }) => Ack::Retry { reason, after },
        None => Ack::Retry { reason, after: None },
    }
}

pub(super) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    // A chain that loops would never end.
    std::iter::from_fn(move || {
        let current = next?;
        next = current.source();
        Some(current)
    })
    .take(64)
}

/// The texts of an error and its sources, each once, joined by colons and cut to [`LONGEST_REASON`].
pub(crate) fn describe(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for cause in chain(error) {
        let part = cause.to_string();
        // Many errors repeat their source in their own text.
        if part.is_empty() || text.ends_with(&part) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&part);
        if text.len() > LONGEST_REASON {
            break;
        }
    }
    if text.is_empty() {
        text.push_str("an error without a text");
    }
    cut(text)
}

/// Cuts a text to [`LONGEST_REASON`] on a character boundary, and marks the cut.
pub(crate) fn cut(mut text: String) -> String {
    const MARK: &str = " … (cut)";
    if text.len() > LONGEST_REASON {
        text.truncate(text.floor_char_boundary(LONGEST_REASON - MARK.len()));
        text.push_str(MARK);
    }
    text
}

/// An error that no retry can help, wrapped by [`fatal`].
pub struct Fatal(BoxError);

/// Marks an error as fatal: the message is dead-lettered, wherever in a chain the mark stands.
///
/// # Examples
/// ```
/// fn parse(text: &str) -> Result<u32, acemq::Fatal> {
///     text.parse().map_err(acemq::fatal)
/// }
/// assert!(parse("12").is_ok());
/// assert_eq!(parse("twelve").unwrap_err().to_string(), "invalid digit found in string");
/// ```
pub fn fatal(error: impl Into<BoxError>) -> Fatal {
    Fatal(error.into())
}

impl fmt::Debug for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fatal").field(&self.0).finish()
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Fatal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// The text of a panic. What was thrown may panic once more when it is dropped; that is the end of it.
pub(crate) fn panic_text(payload: Box<dyn std::any::Any + Send>) -> Cow<'static, str> {
    let text = if let Some(text) = payload.downcast_ref::<&'static str>() {
        Cow::Borrowed(*text)
    } else if let Some(text) = payload.downcast_ref::<String>() {
        Cow::Owned(text.clone())
    } else {
        Cow::Borrowed("a panic without a text")
    };
    if let Err(again) = std::panic::catch_unwind(AssertUnwindSafe(move || drop(payload))) {
        // A third one would meet nobody who catches it.
        std::mem::forget(again);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] BoxError);

    #[test]
    fn fatal_is_found_anywhere_in_a_chain() {
        let inner = fatal("no such product");
        let ack = Err::<(), _>(Outer(Box::new(Outer(Box::new(inner))))).into_ack();
        assert_eq!(ack, Ack::DeadLetter { reason: "outer: no such product".into(), cause: DeadLetter::Fatal });
    }

    #[test]
    fn an_ordinary_error_is_retried_with_the_texts_of_its_chain() {
        let error = Outer("the shop is closed".into());
        let ack = Err::<Ack, _>(error).into_ack();
        assert_eq!(ack, Ack::retry("outer: the shop is closed"));
        assert_eq!(Err::<(), _>("plain").into_ack(), Ack::retry("plain"));
    }

    #[test]
    fn an_error_without_a_text_still_gives_a_sentence() {
        assert_eq!(Err::<(), _>("").into_ack(), Ack::retry("an error without a text"));
    }

    #[test]
    fn a_reason_is_cut_on_a_character_boundary_and_marked() {
        for text in ["x".repeat(5_000), "ä".repeat(1_000_000), "€".repeat(4_096)] {
            let Ack::Retry { reason, .. } = Ack::retry(text) else { panic!("not a retry") };
            assert!(reason.len() <= LONGEST_REASON && reason.len() > LONGEST_REASON - 16);
            assert!(reason.ends_with(" … (cut)"));
        }
        assert_eq!(Ack::park("x".repeat(4_096)), Ack::park("x".repeat(4_096)));
    }
}
