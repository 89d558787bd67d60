//! The rules of [`ClaimStore`], to run against a store of one's own.
//!
//! Each function panics with a sentence that says which rule the store broke. They may run at the same time on one store
//! and on one that holds other entries, as each makes up its own keys; only [`a_purge_takes_only_what_has_ended`] needs to
//! be the only one that purges. They wait for leases of a few milliseconds: in real time, or in paused time if the store's
//! clock is tokio's.

#![allow(clippy::missing_panics_doc, reason = "to panic is how these functions report what they find")]

mod contention;
mod probe;
mod states;

use std::sync::Arc;

pub use self::{
    contention::{
        a_purge_takes_only_what_has_ended, a_retry_is_recognised_among_rivals, an_ended_claim_is_taken_by_one,
        claims_hold_while_a_purge_runs, every_id_has_one_winner,
    },
    states::{
        a_check_passes, a_length_of_nothing_is_refused, a_retry_with_the_same_token_is_recognised,
        an_ended_claim_can_be_taken_over, odd_keys_are_told_apart, only_the_holder_changes_a_claim,
        states_follow_each_other,
    },
};
use super::ClaimStore;

/// The size of [`every_id_has_one_winner`]: 64 tasks that each claim 10,000 ids by default.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Race {
    /// How many claim at the same time.
    pub tasks: usize,
    /// How many ids there are to win.
    pub ids: usize,
}

impl Race {
    /// A race of `tasks` for `ids`.
    #[must_use]
    pub const fn new(tasks: usize, ids: usize) -> Self {
        Self { tasks, ids }
    }
}

impl Default for Race {
    fn default() -> Self {
        Self::new(64, 10_000)
    }
}

/// Holds the store to all rules of this module.
///
/// # Panics
///
/// When it breaks one.
pub async fn claim_store_conformance(store: Arc<dyn ClaimStore>, race: Race) {
    a_check_passes(&store).await;
    states_follow_each_other(&store).await;
    only_the_holder_changes_a_claim(&store).await;
    a_retry_with_the_same_token_is_recognised(&store).await;
    a_retry_is_recognised_among_rivals(&store).await;
    odd_keys_are_told_apart(&store).await;
    an_ended_claim_can_be_taken_over(&store).await;
    an_ended_claim_is_taken_by_one(&store, race.tasks).await;
    a_purge_takes_only_what_has_ended(&store).await;
    claims_hold_while_a_purge_runs(&store).await;
    a_length_of_nothing_is_refused(&store).await;
    every_id_has_one_winner(&store, race).await;
}
