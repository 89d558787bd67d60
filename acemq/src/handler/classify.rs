//! What an error means for its message, said by its type.

use std::{error::Error, time::Duration};

use super::outcome::{Fatal, chain};

/// What an error means for its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// No retry can help: the message is dead-lettered.
    Fatal,
    /// A person has to look at it: the message is parked.
    Park,
    /// Another try may succeed: the policy decides.
    Retry {
        /// The wait before it, in place of the policy's.
        after: Option<Duration>,
    },
}

/// An error that says what it means for its message; derive it.
///
/// The class is found anywhere in a chain of errors, and through `anyhow`. Fatal anywhere decides; otherwise the outermost
/// error that has a class does. A variant without an attribute means what the one error in it means, if that has a class.
///
/// # Examples
/// ```
/// # #[cfg(feature = "macros")] {
/// use acemq::{Ack, handler::IntoAck};
///
/// #[derive(Debug, thiserror::Error, acemq::Classify)]
/// enum OrderError {
///     #[error("no product {0}")]
///     #[fatal]
///     UnknownProduct(u64),
///     #[error("the warehouse is busy")]
///     #[retry(after = "30s")]
///     Busy,
///     #[error("the price changed")]
///     #[park]
///     PriceChanged,
///     #[error("the database is not there")]
///     Database(#[source] std::io::Error),
/// }
///
/// assert!(matches!(Err::<(), _>(OrderError::UnknownProduct(7)).into_ack(), Ack::DeadLetter { .. }));
/// assert!(matches!(Err::<(), _>(OrderError::PriceChanged).into_ack(), Ack::Park { .. }));
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what it means for its message",
    note = "put `#[derive(acemq::Classify)]` on the error"
)]
pub trait Classify {
    /// What this error means, if it means anything but an ordinary failure.
    fn class(&self) -> Option<Class>;
}

impl Classify for Fatal {
    fn class(&self) -> Option<Class> {
        Some(Class::Fatal)
    }
}

/// Looks whether an error is of one type, and what it means; the derive collects one for each type.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Classifier(pub fn(&(dyn Error + 'static)) -> Option<Class>);

inventory::collect!(Classifier);

/// What an error and its sources mean: fatal anywhere, or else what the outermost one says.
pub(super) fn class(error: &(dyn Error + 'static)) -> Option<Class> {
    let mut outermost = None;
    for cause in chain(error) {
        let class = if cause.is::<Fatal>() {
            Some(Class::Fatal)
        } else {
            inventory::iter::<Classifier>.into_iter().find_map(|Classifier(class)| class(cause))
        };
        if class == Some(Class::Fatal) {
            return class;
        }
        outermost = outermost.or(class);
    }
    outermost
}
