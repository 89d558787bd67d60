use sqlx::Error;

use crate::idempotency::StoreError;

/// What a failed statement calls for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A deadlock, or a transaction that could not be serialised: the same again.
    Retry(String),
    /// A row is locked by a transaction that takes its time.
    Locked(String),
    /// The connection was lost, perhaps after the work was done: the same again, on another.
    Cut(String),
    /// A value of one row is at fault, not necessarily the others.
    Row(String),
    /// Nothing to do but to wait.
    Unreachable(String),
    /// Nothing will help but a change of the set-up.
    Setup(String),
    /// The table is not there.
    NoTable,
}

impl Failure {
    /// Judges what is no answer of the database; `database` judges its answers.
    ///
    /// Texts come from here, as an error of the driver may quote the settings that it was given.
    pub(super) fn judge(error: &Error, database: impl FnOnce(&dyn sqlx::error::DatabaseError) -> Self) -> Self {
        match error {
            Error::Database(error) => database(&**error),
            Error::Io(error) => Self::Cut(error.to_string()),
            Error::Tls(_) => Self::Unreachable("the TLS handshake failed".to_owned()),
            Error::PoolTimedOut => Self::Unreachable(
                "no connection of the pool became free in time: either the server does not answer, or all connections are in use"
                    .to_owned(),
            ),
            Error::PoolClosed => Self::Unreachable("the pool is closed".to_owned()),
            Error::WorkerCrashed | Error::Protocol(_) => {
                Self::Cut("the connection broke down".to_owned())
            }
            Error::Configuration(_) => {
                Self::Setup("the settings of the connection are not valid".to_owned())
            }
            Error::TypeNotFound { .. }
            | Error::ColumnDecode { .. }
            | Error::ColumnNotFound(_)
            | Error::ColumnIndexOutOfBounds { .. }
            | Error::Decode(_)
            | Error::Encode(_) => {
                Self::Setup("a column has another type than the table's statement gives it".to_owned())
            }
            other => Self::Unreachable(other.to_string()),
        }
    }

    /// A database that only reads may be one that somebody fails over from, so it is no mistake in the set-up.
    pub(super) fn read_only(why: &str) -> Self {
        Self::Unreachable(format!("the database is read-only: {why}"))
    }

    pub(super) fn into_error(self, create_table: &str) -> StoreError {
        match self {
            Self::Retry(why) | Self::Locked(why) => {
                StoreError::Unreachable { why: format!("other transactions are in the way: {why}") }
            }
            Self::Cut(why) | Self::Unreachable(why) => StoreError::Unreachable { why },
            Self::Row(why) | Self::Setup(why) => StoreError::Misconfigured { why },
            Self::NoTable => {
                StoreError::Misconfigured { why: format!("the table does not exist; create it with:\n{create_table}") }
            }
        }
    }
}
