//! Where deliveries wait before their handler: for a free slot, in their order, and while consuming is paused.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch};

/// Lets so many handlers run at once, and none while it is shut.
#[derive(Debug)]
pub(crate) struct Gate {
    slots: Arc<Semaphore>,
    open: watch::Sender<bool>,
}

/// A place in the line before the gate.
pub(crate) struct Place {
    slot: futures_util::future::BoxFuture<'static, Result<OwnedSemaphorePermit, AcquireError>>,
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
        let mut slot: futures_util::future::BoxFuture<'static, _> = Box::pin(slots.acquire_owned());
        // The place in the semaphore's own line is taken by the first poll, and tasks are polled in any order.
        let waker = futures_util::task::noop_waker_ref();
        let slot = match slot.as_mut().poll(&mut std::task::Context::from_waker(waker)) {
            std::task::Poll::Ready(done) => {
                Box::pin(std::future::ready(done)) as futures_util::future::BoxFuture<'static, _>
            }
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
    /// Waits for a slot and for the gate to be open.
    pub(crate) async fn slot(mut self) -> Slot {
        // The semaphore is never closed.
        let permit = self.slot.await.ok();
        // An error means that the gate is gone, and its consumer with it.
        let _ = self.open.wait_for(|open| *open).await;
        Slot { _permit: permit }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_in_line_is_the_first_through_whoever_polls_first() {
        let gate = Gate::new(1);
        let first = gate.queue();
        let second = gate.queue();
        let third = gate.queue();
        let held = first.slot().await;
        let late = tokio::spawn(third.slot());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut early = tokio::spawn(second.slot());
        drop(held);
        let slot = (&mut early).await.unwrap();
        assert!(!late.is_finished());
        drop(slot);
        drop(late.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_passes_a_shut_gate_and_everything_waiting_passes_once_it_opens() {
        let gate = Gate::new(5);
        gate.shut();
        let waiting = tokio::spawn(gate.queue().slot());
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!waiting.is_finished());
        gate.open();
        drop(waiting.await.unwrap());
    }
}
