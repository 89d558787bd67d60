//! What an application does when it has started and when it has drained.

use std::{fmt, panic::AssertUnwindSafe, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};

use super::Handle;
use crate::Drained;

/// How long what follows a drain may take.
const AFTER_DRAIN: Duration = Duration::from_secs(5);

type Started = Box<dyn Fn(Handle) -> BoxFuture<'static, ()> + Send + Sync>;
type AfterDrain = Box<dyn Fn(Drained) -> BoxFuture<'static, ()> + Send + Sync>;

/// The functions of an application for its start and its end.
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) started: Vec<Started>,
    pub(super) drained: Vec<AfterDrain>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("started", &self.started.len()).field("drained", &self.drained.len()).finish()
    }
}

impl Hooks {
    pub(super) async fn started(&self, handle: &Handle) {
        for hook in &self.started {
            hook(handle.clone()).await;
        }
    }

    /// Whatever these do, the account reaches whoever waits for it.
    pub(super) async fn drained(&self, drained: &Drained) {
        for hook in &self.drained {
            let run = AssertUnwindSafe(async { hook(*drained).await }).catch_unwind();
            if !matches!(tokio::time::timeout(AFTER_DRAIN, run).await, Ok(Ok(()))) {
                tracing::error!("a function that follows the drain panicked or took longer than {AFTER_DRAIN:?}");
            }
        }
    }
}
