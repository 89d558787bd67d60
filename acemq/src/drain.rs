//! What a shutdown left behind.

use std::{
    fmt,
    process::{ExitCode, Termination},
};

use crate::engine::Totals;

/// The account of an application that has closed; as the result of `main` it is the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "whether every handler finished is the exit code of the process: return this from `main`"]
#[non_exhaustive]
pub struct Drained {
    /// Whether every handler that had begun came to its end in time.
    pub finished: bool,
    /// Deliveries that were left unsettled: their handlers did not end even when told to, and the broker delivers them again.
    pub abandoned: u64,
    /// What became of all deliveries, from the start to the end.
    pub totals: Totals,
}

impl Drained {
    /// The account of an application that never received anything.
    pub(crate) fn nothing() -> Self {
        Self { finished: true, abandoned: 0, totals: Totals::default() }
    }
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.totals;
        let how = if self.finished { "every handler finished" } else { "not every handler finished" };
        write!(
            f,
            "closed, {how}: {} delivered; {} accepted, {} retried, {} dead-lettered, {} parked, {} duplicates, {} given back, \
             {} abandoned",
            totals.delivered,
            totals.acked,
            totals.retried + totals.in_progress,
            totals.dead_lettered + totals.rejected,
            totals.parked,
            totals.duplicate,
            totals.released + totals.requeued + totals.lost,
            self.abandoned,
        )
    }
}

impl Termination for Drained {
    fn report(self) -> ExitCode {
        if self.finished { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
