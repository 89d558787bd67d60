//! What a shutdown left behind.

use std::{
    fmt,
    process::{ExitCode, Termination},
};

use crate::engine::{Present, Snapshot, Totals};

/// The account of an application that has drained or closed; as the result of `main` it is the exit code.
///
/// Its parts add up: what was delivered is either settled, see [`Totals`], or still here, see [`Present`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "whether every handler finished is the exit code of the process: return this from `main`"]
#[non_exhaustive]
pub struct Drained {
    /// Whether every handler that had begun came to its end in time, by itself or because it was told to.
    pub finished: bool,
    /// Deliveries whose handlers did not end even when told to; the broker delivers them again.
    pub abandoned: u64,
    /// What became of the deliveries that are settled.
    pub totals: Totals,
    /// Where the others are. After a drain that is what waits, at the gate or for a next try; after a close it is what
    /// handlers that block their threads still have.
    pub left: Present,
}

impl Drained {
    /// The account of an application that never received anything.
    pub(crate) fn nothing() -> Self {
        Self::closed(Snapshot::default())
    }

    /// The account after a close, when nothing is waited for any more.
    pub(crate) fn closed(snapshot: Snapshot) -> Self {
        let Snapshot { totals, present, given_up } = snapshot;
        let left = u64::try_from(present.total()).unwrap_or(u64::MAX);
        let abandoned = totals.returned.abandoned + left;
        Self { finished: given_up == 0 && left == 0, abandoned, totals, left: present }
    }

    /// The account while the application goes on; `finished` says whether what was waited for has come.
    pub(crate) fn so_far(finished: bool, snapshot: Snapshot) -> Self {
        let Snapshot { totals, present, .. } = snapshot;
        Self { finished, abandoned: totals.returned.abandoned, totals, left: present }
    }
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { finished, totals, left, .. } = self;
        let how = match (finished, left.starting + left.running) {
            (true, _) => "every handler finished",
            (false, 0) => "not every handler finished",
            (false, _) => "handlers still run",
        };
        write!(f, "{how}; {} delivered", totals.delivered)?;
        for (count, what) in [
            (totals.acked, "accepted"),
            (totals.duplicate, "duplicates"),
            (totals.retried, "retried"),
            (totals.in_progress, "in progress elsewhere"),
            (totals.dead_lettered, "given up"),
            (totals.rejected, "rejected"),
            (totals.parked, "parked"),
            (totals.released, "released"),
            (totals.returned.unstarted, "given back unstarted"),
            (totals.returned.waiting, "given back from their wait"),
            (totals.returned.stopped, "stopped and given back"),
            (totals.returned.abandoned, "abandoned and given back"),
            (totals.returned.failed, "given back after a failure"),
            (totals.lost, "not settled before their channel was gone"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        for (count, what) in [
            (left.held, "held"),
            (left.waiting, "waiting"),
            (left.starting + left.running, "in handlers"),
            (left.settling, "being settled"),
        ] {
            if count > 0 {
                write!(f, ", {count} still {what}")?;
            }
        }
        Ok(())
    }
}

impl Termination for Drained {
    fn report(self) -> ExitCode {
        if self.finished { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// A wait for running handlers that was given up by its caller: the handlers go on, and consuming stays paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the wait was given up; handlers go on, and consuming stays paused: {0}")]
pub struct WaitAbandoned(
    /// The account at that moment.
    pub Drained,
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Returned;

    #[test]
    fn the_account_is_one_line_that_leaves_out_what_did_not_happen() {
        assert_eq!(Drained::nothing().to_string(), "every handler finished; 0 delivered");
        let totals = Totals {
            delivered: 7,
            acked: 4,
            returned: Returned { waiting: 2, ..Returned::default() },
            ..Totals::default()
        };
        let present = Present { running: 1, ..Present::default() };
        let drained = Drained::closed(Snapshot { totals, present, given_up: 0 });
        assert_eq!(
            drained.to_string(),
            "handlers still run; 7 delivered, 4 accepted, 2 given back from their wait, 1 still in handlers"
        );
        assert_eq!((drained.finished, drained.abandoned), (false, 1));
    }

    #[test]
    fn a_handler_that_was_given_up_is_a_failure_even_if_its_delivery_was_lost() {
        let totals = Totals { delivered: 1, lost: 1, ..Totals::default() };
        let drained = Drained::closed(Snapshot { totals, present: Present::default(), given_up: 1 });
        assert!(!drained.finished);
    }
}
