//! What a type has to be, asked in words of its own: the compiler names the trait that is missing, so each question is one.

use std::{error::Error, fmt::Display};

use crate::envelope::Codec;

/// What `codec` may name.
///
/// The codec is taken from here rather than named: a type that has no `Itself` is blamed once, and whatever would follow
/// from it is not looked at. Named, it would be blamed again for every message that it cannot read.
pub trait CodecType {
    /// The codec itself.
    type Itself: Codec;
}

impl<C: Codec> CodecType for C {
    type Itself = C;
}

/// What can be the key of a claim.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key",
    label = "the key of a claim is written as text: return a `&str`, a `String`, a number or anything else with `Display`"
)]
pub trait Key: Display {}

#[diagnostic::do_not_recommend]
impl<K: Display> Key for K {}

/// What `#[consumers]` can be put on.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a service of consumers",
    label = "many calls on many threads share one service: it must be `Send`, `Sync` and own what it holds",
    note = "in place of `Rc` and `RefCell`, a service holds `Arc` and `Mutex`"
)]
pub trait Service: Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<S: Send + Sync + 'static> Service for S {}

/// What `#[derive(Classify)]` can be put on.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error",
    label = "only an error can say what it means for its message",
    note = "implement `std::error::Error` for it, or let `thiserror` do it"
)]
pub trait ErrorType: Error + 'static {}

#[diagnostic::do_not_recommend]
impl<E: Error + 'static> ErrorType for E {}
