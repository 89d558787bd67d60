//! The identity of a message, and how it is read from and written to AMQP properties.

mod properties;
mod value;

pub use properties::Properties;
pub use value::{Table, Value};
