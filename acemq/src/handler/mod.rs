//! What a consumer function may take and return.

mod blocking;
mod classify;
mod context;
mod extract;
mod message_type;
mod outcome;
mod scope;

pub(crate) use blocking::{Holding, blocked};
pub use classify::{Class, Classifier, Classify};
pub use context::{Context, Delivered};
pub use extract::{ExtractError, FromContext, FromMessage, Message, Raw, State, StateValue, Text};
pub use message_type::{Expected, MessageType};
pub use outcome::{Ack, BoxError, DeadLetter, Fatal, IntoAck, LONGEST_REASON, Park, fatal};
pub(crate) use outcome::{cut, failed, panic_text};
pub use scope::{Requirement, Requirements, Scope};
