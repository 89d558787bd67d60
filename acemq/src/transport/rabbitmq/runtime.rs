//! The runtime that serves sockets, heartbeats, confirms and settlements.
//!
//! It is not the application's: a handler that blocks its threads must not delay a heartbeat, or the broker closes the
//! connection of everybody. One thread is enough, since lapin parses on a thread of its own per connection.

use std::{fmt, io, time::Duration};

use tokio::runtime::{Builder, Handle, Runtime};

pub(super) struct Background(Option<Runtime>);

impl Background {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("acemq-amqp")
            // Threads that only resolve names should not outlive their use by the ten seconds that are the default.
            .thread_keep_alive(Duration::from_millis(100))
            .enable_io()
            .enable_time()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    /// Where to spawn; nothing after the end.
    pub(super) fn handle(&self) -> Option<&Handle> {
        self.0.as_ref().map(Runtime::handle)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Not a plain drop, which waits and so panics inside an async context.
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").finish_non_exhaustive()
    }
}
