//! Why a message is set aside, in the words of its error header.

use std::{fmt, time::Duration};

use crate::policy::render;

/// Why a message is set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    Exhausted { attempts: u32, last: String },
    TooOld { limit: Duration, last: String },
    Rejected(String),
    Fatal(String),
    Parked(String),
    Undecodable(String),
    Poison(String),
    NoId,
    CrashLoop { redeliveries: u32 },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted { attempts: 1, last } => {
                write!(f, "attempts exhausted after 1 delivery: {last}")
            }
            Self::Exhausted { attempts, last } => {
                write!(f, "attempts exhausted after {attempts} deliveries: {last}")
            }
            Self::TooOld { limit, last } => write!(f, "too old, past {}: {last}", render(*limit)),
            Self::Rejected(why) => write!(f, "rejected by the handler: {why}"),
            Self::Fatal(why) => write!(f, "fatal: {why}"),
            Self::Parked(why) => write!(f, "parked by the handler: {why}"),
            Self::Undecodable(why) => write!(f, "undecodable: {why}"),
            Self::Poison(why) => write!(f, "poison: {why}"),
            Self::CrashLoop { redeliveries } => write!(
                f,
                "crash loop: the broker had to take the message back {redeliveries} times; its consumer died over it, or \
                 lost its connection each time"
            ),
            Self::NoId => f.write_str("no id: a consumer that keeps duplicates out cannot tell this message apart"),
        }
    }
}
