//! Handlers that hold a thread until they return, and cannot be stopped.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A thread belongs to the process, whichever application its handler is of.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Says that a handler holds a thread, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Holding(());

impl Holding {
    pub(crate) fn begin() -> Self {
        HELD.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether some handler holds a thread.
pub(crate) fn blocked() -> bool {
    HELD.load(Ordering::SeqCst) > 0
}
