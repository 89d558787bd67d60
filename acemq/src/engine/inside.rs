//! Whose handler a task is in, so that one that waits for handlers does not wait for itself.

use std::sync::Arc;

use super::Consumer;

tokio::task_local! {
    /// The address of the consumer: it lives for as long as its handlers do.
    static HANDLER_OF: usize;
}

/// Runs a handler's future as one of this consumer.
pub(super) fn a_handler_of<F: Future>(consumer: &Arc<Consumer>, call: F) -> impl Future<Output = F::Output> + use<F> {
    HANDLER_OF.scope(address(consumer), call)
}

/// Whether this task is in a handler of the consumer.
pub(crate) fn inside(consumer: &Arc<Consumer>) -> bool {
    HANDLER_OF.try_with(|handler| *handler == address(consumer)).unwrap_or(false)
}

/// Whether this task is in a handler.
pub(crate) fn inside_any() -> bool {
    HANDLER_OF.try_with(|_| ()).is_ok()
}

fn address(consumer: &Arc<Consumer>) -> usize {
    Arc::as_ptr(consumer).addr()
}
