//! The end of a process whose handlers do not end.

use std::{process::Termination, time::Duration};

use crate::Drained;

/// What the program has left to do after the close, such as writing its log, has this long.
const AFTER_CLOSE: Duration = Duration::from_secs(1);

/// Ends the process a little later, from a thread that nothing waits for. A runtime that is dropped waits for its threads,
/// and a handler that never returns has one of them.
pub(super) fn soon(drained: &Drained) {
    let drained = *drained;
    let end = move || {
        std::thread::sleep(AFTER_CLOSE);
        // `ExitCode` cannot be given to `exit`, and there are only two.
        let _ = drained.report();
        std::process::exit(i32::from(!drained.finished));
    };
    if let Err(error) = std::thread::Builder::new().name("acemq-exit".to_owned()).spawn(end) {
        tracing::error!(%error, "no thread could be started to end the process");
    }
}
