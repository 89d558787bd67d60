use uuid::Uuid;

/// What stands for a key: 128 bits of a hash that nobody outside can foresee.
///
/// Two of a million keys have the same with a probability of one in 10²⁶, far below that of a memory that forgets; without
/// the keys themselves an entry is small, and finding one touches nothing but the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) hash: u64,
    pub(super) check: u64,
}

/// What stands for a token: its random bits, folded into 64. Only the tokens of one key are ever compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder(u64);

impl From<Uuid> for Holder {
    fn from(token: Uuid) -> Self {
        let (high, low) = token.as_u64_pair();
        Self(high ^ low)
    }
}

/// When a lease or a retention ends; the lowest bit tells which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends(u64);

impl Ends {
    /// The last time that can be told: 292 years after the store was made.
    const LAST: u64 = u64::MAX >> 1;

    pub(super) fn of_lease(at: u64) -> Self {
        Self(at.min(Self::LAST) << 1)
    }

    pub(super) fn of_retention(at: u64) -> Self {
        Self(at.min(Self::LAST) << 1 | 1)
    }

    pub(super) fn at(self) -> u64 {
        self.0 >> 1
    }

    pub(super) fn is_retention(self) -> bool {
        self.0 & 1 == 1
    }
}

/// One key: half a line of the processor's cache, and never in two lines.
#[derive(Debug)]
#[repr(align(32))]
pub(super) struct Entry {
    pub(super) mark: Mark,
    pub(super) holder: Holder,
    pub(super) ends: Ends,
}

impl Entry {
    pub(super) fn is_claimed_by(&self, holder: Holder) -> bool {
        self.holder == holder && !self.ends.is_retention()
    }
}
