//! What the expansion of a macro names; no part of the public interface.

pub mod check;
mod dispatch;
mod fitness;

use std::any::Any;

use crate::handler::Holding;

pub use std::{error::Error as StdError, option::Option, result::Result, string::String, sync::Arc, time::Duration};

pub use inventory;

pub use fitness::{CodecType, ErrorType, Key, Service};

pub use dispatch::{Expects, ExpectsNothing, HidesNoError, Inside, Needs, NeedsNothing, Returned, Unclassified};

pub use crate::{
    envelope::{DecodeError, DefaultCodec},
    handler::{
        Ack, Class, Classifier, Classify, Context, FromContext, FromMessage, IntoAck, MessageType, Requirements,
    },
    policy::{RetryPolicy, duration},
    registry::{
        Bind, Call, Consumer, ConsumerSpec, Consumers, Idempotent, Location, NoId, QueueKind, Registration, RungKind,
        Scoped,
    },
};

use crate::handler::{Expected, ExtractError, State};

/// A duration that may be malformed, which a check blames where it stands.
#[must_use]
pub const fn parse(text: &str) -> Option<Duration> {
    match crate::policy::try_duration(text) {
        Ok(duration) => Some(duration),
        Err(_) => None,
    }
}

/// A duration, or this one in place of a malformed one: what is built from it has to be evaluated without a panic.
#[must_use]
pub const fn or(duration: Option<Duration>, otherwise: Duration) -> Duration {
    match duration {
        Some(duration) => duration,
        None => otherwise,
    }
}

/// The shortest wait, in place of a malformed duration.
pub const MOMENT: Duration = Duration::from_millis(1);

/// [`RetryPolicy::fixed`] with a delay that may be malformed.
#[must_use]
pub const fn fixed(attempts: u32, delay: Option<Duration>) -> RetryPolicy {
    RetryPolicy::fixed(attempts, or(delay, MOMENT))
}

/// [`RetryPolicy::exponential`] with delays that may be malformed.
#[must_use]
pub const fn exponential(attempts: u32, first: Option<Duration>, max: Option<Duration>) -> RetryPolicy {
    let first = or(first, MOMENT);
    RetryPolicy::exponential(attempts, first, or(max, first))
}

/// [`RetryPolicy::unbounded`] with a delay that may be malformed.
#[must_use]
pub const fn unbounded(delay: Option<Duration>) -> RetryPolicy {
    RetryPolicy::unbounded(or(delay, MOMENT))
}

/// Boxes the call of a consumer function.
pub fn call<F: Future<Output = Ack> + Send + 'static>(future: F) -> Call {
    Box::pin(future)
}

/// Runs a consumer function that blocks where it holds nobody up. Its panic becomes the caller's.
pub async fn blocking<T: Send + 'static>(function: impl FnOnce() -> T + Send + 'static) -> T {
    let holding = Holding::begin();
    let call = move || {
        // Until the function returns, whether or not somebody waits for it.
        let _holding = holding;
        function()
    };
    match tokio::task::spawn_blocking(call).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(match error.try_into_panic() {
            Ok(panic) => panic,
            // The runtime is going down and never started the function.
            Err(error) => Box::new(error.to_string()) as Box<dyn Any + Send>,
        }),
    }
}

/// What becomes of a message of another type than the consumer's, or of a later version.
#[must_use]
pub fn unexpected(context: &Context, expected: Option<Expected>) -> Option<Ack> {
    expected.and_then(|expected| expected.refuse(context))
}

/// What a message that does not decode becomes.
#[must_use]
pub fn undecodable(error: &DecodeError) -> Ack {
    Ack::undecodable(error)
}

/// An argument after the message.
///
/// # Errors
/// When it cannot be had.
pub fn argument<A: FromContext>(context: &Context) -> impl Future<Output = Result<A, ExtractError>> + Send {
    A::from_context(context)
}

/// The service whose method is to be called.
///
/// # Errors
/// When the application does not provide it.
pub async fn service<S: Service>(context: &Context) -> Result<Arc<S>, ExtractError> {
    let State(service) = <State<Arc<S>> as FromContext>::from_context(context).await?;
    Ok(service)
}

/// Notes that a service has to be provided.
pub fn requires_service<S: 'static>(requirements: &mut Requirements) {
    requirements.state::<Arc<S>>();
}

/// What an error means, if it is of type `E`.
#[must_use]
pub fn class_of<E: Classify + ErrorType>(error: &(dyn StdError + 'static)) -> Option<Class> {
    error.downcast_ref::<E>().and_then(Classify::class)
}

/// The key of a claim, from whatever a key function returns.
pub fn key<K: Key>(key: K) -> String {
    key.to_string()
}

/// Stands in for a consumer that does not compile, so that nothing else complains.
pub const BROKEN: Registration = Registration {
    name: "",
    location: Location { file: "", line: 0 },
    spec: ConsumerSpec::new(""),
    requires: |_| {},
    invoke: |_| Box::pin(std::future::ready(Ack::Release)),
};
