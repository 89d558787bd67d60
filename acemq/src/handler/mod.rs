//! What a consumer function may take and return.

mod context;
mod extract;
mod outcome;
mod scope;

pub use context::{Context, Delivered};
pub use extract::{ExtractError, FromContext, FromMessage, Message, Raw, State, Text};
pub use outcome::{Ack, BoxError, DeadLetter, Fatal, IntoAck, LONGEST_REASON, Park, fatal};
pub(crate) use outcome::{cut, panic_text};
pub use scope::{Requirement, Requirements, Scope};
