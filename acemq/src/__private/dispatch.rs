//! Choices that depend on whether a type implements a trait, which stable Rust cannot make in one `impl`.
//!
//! An expansion knows the concrete type, and there a method of the type itself is preferred to one of a trait in scope: the
//! first is there under a bound, the second always. So `Expects::<T>::MESSAGE` is the one of the first `impl` when
//! `T: MessageType`, and otherwise that of [`ExpectsNothing`]. In a generic function this would not work, and acemq never
//! asks there.

use std::{error::Error, marker::PhantomData};

use crate::handler::{Ack, Class, Classify, Expected, FromContext, MessageType, Requirements, failed};

/// What a consumer of `T` expects of the envelope.
#[derive(Debug)]
pub struct Expects<T>(PhantomData<T>);

impl<T: MessageType> Expects<T> {
    /// The type and version of `T`.
    pub const MESSAGE: Option<Expected> = Some(Expected { kind: T::TYPE, version: T::VERSION });
}

/// What is expected of the envelope when the message is no [`MessageType`].
pub trait ExpectsNothing {
    /// Nothing.
    const MESSAGE: Option<Expected> = None;
}

impl<T> ExpectsNothing for Expects<T> {}

/// What an argument of type `A` needs from the application.
#[derive(Debug)]
pub struct Needs<A>(PhantomData<A>);

impl<A: FromContext> Needs<A> {
    /// Notes it.
    pub const NOTE: fn(&mut Requirements) = A::requires;
}

/// What a type needs that is no argument: to be blamed for that once, where it is taken.
pub trait NeedsNothing {
    /// Notes nothing.
    const NOTE: fn(&mut Requirements) = |_| {};
}

impl<A> NeedsNothing for Needs<A> {}

/// What a consumer function returned.
#[derive(Debug)]
pub struct Returned<'a, T>(pub &'a T);

impl<T, E: AsRef<dyn Error + Send + Sync>> Returned<'_, Result<T, E>> {
    /// What a failure asks for whose error is inside another: boxing an `anyhow::Error` hides the type of what it holds.
    #[must_use]
    pub fn hidden(&self) -> Option<Ack> {
        self.0.as_ref().err().map(|error| failed(error.as_ref()))
    }
}

/// What any other value has to say about an error inside it.
pub trait HidesNoError {
    /// Nothing.
    fn hidden(&self) -> Option<Ack> {
        None
    }
}

impl<T> HidesNoError for Returned<'_, T> {}

/// What a variant of an error holds.
#[derive(Debug)]
pub struct Inside<'a, T>(pub &'a T);

impl<T: Classify> Inside<'_, T> {
    /// What the error in it means.
    #[must_use]
    pub fn class(&self) -> Option<Class> {
        self.0.class()
    }
}

/// What anything else in an error means.
pub trait Unclassified {
    /// Nothing.
    fn class(&self) -> Option<Class> {
        None
    }
}

impl<T> Unclassified for Inside<'_, T> {}
