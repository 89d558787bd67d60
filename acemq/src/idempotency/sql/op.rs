use crate::idempotency::{Claim, Fenced};

/// What is asked of the table.
///
/// In one transaction they go in this order, so that what a confirmation or a release settles is settled for the claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Confirm,
    Renew,
    Release,
    Claim,
}

/// One key of one caller.
#[derive(Debug, Clone)]
pub(super) struct Op {
    pub(super) kind: Kind,
    /// The length of the lease or retention; nothing for a release.
    pub(super) millis: i64,
    pub(super) key: Box<str>,
    pub(super) token: Box<str>,
}

/// What one statement can deal with: keys in ascending order, for one length.
///
/// Claims have each key once, the others each pair.
#[derive(Debug)]
pub struct Group<'a> {
    pub(super) kind: Kind,
    pub(super) millis: i64,
    pub(super) items: Vec<Item<'a>>,
}

impl Group<'_> {
    pub(super) fn is_lone_claim(&self) -> bool {
        self.kind == Kind::Claim && self.items.len() == 1
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item<'a> {
    pub(super) key: &'a str,
    pub(super) token: &'a str,
}

/// Whose the key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The holder of the token's.
    Mine,
    /// Nobody's: its message has been handled.
    Confirmed,
    /// Somebody else's, or nobody's.
    Other,
}

impl Verdict {
    pub(super) fn mine(yes: bool) -> Self {
        if yes { Self::Mine } else { Self::Other }
    }
}

impl From<Verdict> for Claim {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Mine => Self::Claimed,
            Verdict::Confirmed => Self::Duplicate,
            Verdict::Other => Self::InProgress,
        }
    }
}

impl From<Verdict> for Fenced {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Mine => Self::Held,
            Verdict::Confirmed | Verdict::Other => Self::Lost,
        }
    }
}
