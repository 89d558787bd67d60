//! Where deliveries wait before their handler: for a free slot, in their order, and while consuming is paused.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch};

/// Lets so many handlers run at once, and none while it is shut.
#[derive(Debug)]
pub(crate) struct Gate {
    slots: Arc<Semaphore>,
    open: watch::Sender<bool>,
}

/// A place in the line before the gate.
pub(crate) struct Place {
    slot: BoxFuture<'static, Result<OwnedSemaphorePermit, AcquireError>>,
    open: watch::Receiver<bool>,
}

/// The right to run one handler, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Gate {
    pub(crate) fn new(slots: u16) -> Self {
        Self { slots: Arc::new(Semaphore::new(usize::from(slots))), open: watch::Sender::new(true) }
    }

    /// Takes a place in the line. Who calls first is let through first.
    pub(crate) fn queue(&self) -> Place {
        let slots = Arc::clone(&self.slots);
        let mut slot: BoxFuture<'static, _> = Box::pin(slots.acquire_owned());
        // The place in the semaphore's own line is taken by the first poll, and tasks are polled in any order.
        let waker = futures_util::task::noop_waker_ref();
        let slot = match slot.as_mut().poll(&mut std::task::Context::from_waker(waker)) {
            std::task::Poll::Ready(done) => Box::pin(std::future::ready(done)) as BoxFuture<'static, _>,
            std::task::Poll::Pending => slot,
        };
        Place { slot, open: self.open.subscribe() }
    }

    pub(crate) fn shut(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    pub(crate) fn is_open(&self) -> bool {
        *self.open.borrow()
    }
}

impl Place {
    /// Waits for a slot and for the gate to be open, and passes.
    ///
    /// `entered` says in the books that a delivery is past the gate, `left` that it is before it after all. The entry comes
    /// first and the gate is looked at once more after it: whoever shuts the gate and then reads the books either sees the
    /// entry, or has shut the gate before that look.
    pub(crate) async fn pass(mut self, entered: impl Fn(), left: impl Fn()) -> Slot {
        // The semaphore is never closed.
        let permit = self.slot.await.ok();
        loop {
            // An error means that the gate is gone, and its consumer with it.
            let _ = self.open.wait_for(|open| *open).await;
            entered();
            if *self.open.borrow() {
                return Slot { _permit: permit };
            }
            left();
        }
    }
}

#[cfg(test)]
mod tests;
