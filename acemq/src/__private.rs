//! What the expansion of a macro names; no part of the public interface.

pub use std::{option::Option, result::Result, string::String, time::Duration};

pub use inventory;

pub use crate::{
    envelope::{DecodeError, DefaultCodec},
    handler::{Ack, Context, FromContext, FromMessage, IntoAck, Park, Requirements},
    policy::{RetryPolicy, try_duration},
    registry::{
        Bind, Call, Consumer, ConsumerSpec, Idempotent, Location, NoId, QueueKind, Registration, RungKind, Scoped,
    },
};

/// Boxes the call of a consumer function.
pub fn call<F: Future<Output = Ack> + Send + 'static>(future: F) -> Call {
    Box::pin(future)
}

/// What a message that does not decode becomes.
#[must_use]
pub fn undecodable(error: &DecodeError) -> Ack {
    Ack::undecodable(error)
}
