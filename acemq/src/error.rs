//! Why an application does not start or does not go on.

use std::fmt;

use crate::transport::ConnectError;

/// Why an application could not be started.
///
/// `Debug` writes the same sentences as `Display`, since that is what a `main` that returns this error prints.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration, the consumers or their state are wrong: everything that was found, at once.
    #[error("{}", list("the application cannot start", .0))]
    Config(Vec<String>),
    /// The broker cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The broker refused what consumers need: everything that was refused, at once.
    #[error("{}", list("the broker refused what the consumers need", .0))]
    Declare(Vec<String>),
    /// Health and metrics cannot be served.
    #[error("health and metrics cannot be served at `{address}`: {why}")]
    Actuator {
        /// The address.
        address: String,
        /// The reason.
        why: String,
    },
    /// There is no runtime to run on.
    #[error("acemq runs inside a Tokio runtime: put `#[tokio::main]` on `main`, or call it from `Runtime::block_on`")]
    NoRuntime,
    /// The signals of the operating system cannot be listened to.
    #[error("signals cannot be listened to: {0}")]
    Signals(#[source] std::io::Error),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn list(what: &str, problems: &[String]) -> String {
    match problems {
        [one] => format!("{what}: {one}"),
        many => {
            use fmt::Write as _;
            let mut text = format!("{what}; {} problems:", many.len());
            for problem in many {
                // Writing to a string does not fail.
                let _ = write!(text, "\n  - {problem}");
            }
            text
        }
    }
}
