//! Takes every future out of a set that is ready, and says so only when there are no more.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::{StreamExt, stream::FuturesUnordered, task::AtomicWaker};

/// Polls a [`FuturesUnordered`] until nothing in it is ready.
///
/// Its `Pending` alone does not mean that: it also gives way now and then with finished futures left inside, and wakes its
/// waker to be asked again. So it is asked again until a `Pending` comes without a wake.
#[derive(Debug, Default)]
pub(super) struct Drain(Arc<Relay>);

#[derive(Debug, Default)]
struct Relay {
    woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl Drain {
    /// Appends what is ready; ready itself if that was anything.
    pub(super) fn poll<F: Future>(
        &self,
        set: &mut FuturesUnordered<F>,
        cx: &mut Context<'_>,
        ready: &mut Vec<F::Output>,
    ) -> Poll<()> {
        self.0.task.register(cx.waker());
        let waker = Waker::from(Arc::clone(&self.0));
        let mut relayed = Context::from_waker(&waker);
        loop {
            self.0.woken.store(false, Ordering::Release);
            match set.poll_next_unpin(&mut relayed) {
                Poll::Ready(Some(output)) => ready.push(output),
                Poll::Pending if self.0.woken.load(Ordering::Acquire) => {}
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        if ready.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, pin::Pin};

    use futures_util::future::{FutureExt, poll_fn, ready};

    use super::*;

    #[test]
    fn futures_that_give_way_are_asked_again() {
        // Each wakes itself the first time, so that the set gives way with ready ones left.
        let set: FuturesUnordered<Pin<Box<dyn Future<Output = u32>>>> = FuturesUnordered::new();
        for number in 0..100 {
            let polled = Cell::new(false);
            set.push(Box::pin(poll_fn(move |cx| {
                if polled.replace(true) {
                    return Poll::Ready(number);
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })));
            set.push(Box::pin(ready(number)));
        }
        let mut set = set;
        let mut outputs = Vec::new();
        let drain = Drain::default();
        let done = poll_fn(|cx| drain.poll(&mut set, cx, &mut outputs)).now_or_never();
        assert_eq!(done, Some(()));
        assert_eq!(outputs.len(), 200);
    }

    #[test]
    fn an_empty_set_is_pending() {
        let mut set = FuturesUnordered::<std::future::Ready<()>>::new();
        let mut outputs = Vec::new();
        let poll = poll_fn(|cx| Drain::default().poll(&mut set, cx, &mut outputs)).now_or_never();
        assert_eq!(poll, None);
    }
}
