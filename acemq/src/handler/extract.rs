//! The arguments of a consumer function: the message first, then whatever can be had from its context.

use std::{any::type_name, future::Future, ops::Deref};

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::{context::Context, outcome::BoxError, scope::Requirements};
use crate::envelope::{Codec, DecodeError, DefaultCodec, Envelope};

/// A first argument: read from the message by the codec of the consumer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a message",
    label = "the first argument of a consumer is its message",
    note = "a message type derives `serde::Deserialize`; for the undecoded bytes take `acemq::Raw`",
    note = "`Context`, `State<T>` and other extractors come after the message"
)]
pub trait FromMessage<C = DefaultCodec>: Sized {
    /// Reads the value.
    ///
    /// # Errors
    /// When the body is not what the type wants: the message is parked, unless the error says that a retry can help.
    fn from_message(context: &Context) -> Result<Self, DecodeError>;
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned, C: Codec> FromMessage<C> for T {
    fn from_message(context: &Context) -> Result<Self, DecodeError> {
        if !C::reads(context.content_type()) {
            return Err(DecodeError::ContentType {
                found: context.content_type().unwrap_or_default().to_owned(),
                expected: C::CONTENT_TYPE,
            });
        }
        C::decode(context.body())
    }
}

/// The body as it came, undecoded, whatever its content type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw(pub Bytes);

impl<C> FromMessage<C> for Raw {
    fn from_message(context: &Context) -> Result<Self, DecodeError> {
        Ok(Self(context.body().clone()))
    }
}

/// A body of UTF-8 text, whatever its content type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub String);

impl<C> FromMessage<C> for Text {
    fn from_message(context: &Context) -> Result<Self, DecodeError> {
        match std::str::from_utf8(context.body()) {
            Ok(text) => Ok(Self(text.to_owned())),
            Err(error) => Err(DecodeError::Malformed(error.to_string())),
        }
    }
}

/// A decoded body together with its envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<T> {
    /// What the message is.
    pub envelope: Envelope,
    /// The decoded body.
    pub body: T,
}

impl<T> Deref for Message<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.body
    }
}

impl<T: FromMessage<C>, C> FromMessage<C> for Message<T> {
    fn from_message(context: &Context) -> Result<Self, DecodeError> {
        Ok(Self { envelope: context.envelope().clone(), body: T::from_message(context)? })
    }
}

/// Every argument after the first: taken from what surrounds the message.
///
/// # Examples
/// ```
/// use acemq::{Context, ExtractError, FromContext};
///
/// struct Tenant(String);
///
/// impl FromContext for Tenant {
///     async fn from_context(context: &Context) -> Result<Self, ExtractError> {
///         let tenant = context.header("tenant").and_then(|value| value.as_text());
///         tenant.map(|name| Tenant(name.to_owned())).ok_or_else(|| ExtractError::fatal("no tenant header"))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something a consumer can ask for",
    label = "every argument after the message must be an extractor",
    note = "for a value of your own, take `acemq::State<{Self}>` and provide it with `App::state`"
)]
pub trait FromContext: Sized {
    /// Takes the value; a failure is a failure of the handler.
    fn from_context(context: &Context) -> impl Future<Output = Result<Self, ExtractError>> + Send;

    /// Names what the application has to provide, so that a missing value is found before the first connection.
    fn requires(requirements: &mut Requirements) {
        let _ = requirements;
    }
}

/// Why an argument could not be had: the delivery fails, and is tried again unless the error is fatal.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ExtractError(Why);

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error(transparent)]
    Failed(BoxError),
    #[error(transparent)]
    Unavailable(BoxError),
}

impl ExtractError {
    /// A failure that another try may not meet.
    #[must_use]
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(Why::Failed(error.into()))
    }

    /// Something that every message needs is not there: this one goes back after a pause, and spends no attempt.
    #[must_use]
    pub fn unavailable(error: impl Into<BoxError>) -> Self {
        Self(Why::Unavailable(error.into()))
    }

    /// A failure that no retry can help: the message is dead-lettered.
    #[must_use]
    pub fn fatal(error: impl Into<BoxError>) -> Self {
        Self(Why::Failed(Box::new(super::outcome::fatal(error))))
    }

    /// What the failure makes of the message.
    #[must_use]
    pub fn into_ack(self) -> super::Ack {
        match self.0 {
            Why::Failed(error) => super::outcome::failed(&*error),
            Why::Unavailable(error) => {
                tracing::warn!("a message goes back: {}", super::outcome::describe(&*error));
                super::Ack::release()
            }
        }
    }
}

impl FromContext for Context {
    async fn from_context(context: &Context) -> Result<Self, ExtractError> {
        Ok(context.clone())
    }
}

/// A value that the application provides with `App::state`; each call gets a clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State<S>(pub S);

impl<S> Deref for State<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

/// What can be the state of an application: each call of a consumer gets a clone.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the state of an application",
    label = "every call of the consumer gets a clone, on any thread: the type must be `Clone`, `Send` and `Sync`",
    note = "to share one value, take `acemq::State<std::sync::Arc<{Self}>>`; what is in the `Arc` still has to be `Send` and `Sync`"
)]
pub trait StateValue: Clone + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<S: Clone + Send + Sync + 'static> StateValue for S {}

impl<S: StateValue> FromContext for State<S> {
    async fn from_context(context: &Context) -> Result<Self, ExtractError> {
        match context.scope().get::<S>() {
            Some(value) => Ok(Self(value.clone())),
            None => {
                Err(ExtractError::new(format!("no state of type `{}`: provide it with `App::state`", type_name::<S>())))
            }
        }
    }

    fn requires(requirements: &mut Requirements) {
        requirements.state::<S>();
    }
}
