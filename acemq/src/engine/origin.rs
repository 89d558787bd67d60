//! The channel of a delivery.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::consumer::Phase;
use crate::transport::{Channel, Settled, Verdict};

/// Where a delivery came from, and where it is settled.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) channel: Arc<dyn Channel>,
    /// Cancelled when the channel is gone.
    pub(crate) lost: CancellationToken,
    /// Cancelled when the broker sends nothing more on the channel, at a shutdown.
    pub(crate) quiet: CancellationToken,
}

impl Origin {
    /// Gives a delivery back. At a shutdown not before the broker has stopped to send: it would send it here once more.
    pub(super) async fn give_back(&self, tag: u64, phase: &Phase) -> Settled {
        if phase.closing.is_cancelled() {
            tokio::select! {
                () = self.quiet.cancelled() => {}
                () = self.lost.cancelled() => {}
                () = phase.abandon.cancelled() => {}
            }
        }
        self.channel.settle(tag, Verdict::Requeue)
    }
}
