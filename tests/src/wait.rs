//! Waiting for what a test expects, and names that no other test uses.

use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};

/// How often [`eventually`] looks.
const INTERVAL: Duration = Duration::from_millis(20);

/// Asks `look` again and again until it gives `Ok`, and returns what is in it; after `deadline` the test fails with a
/// sentence that names `what` was awaited and the last value that was seen instead.
///
/// Wait for `>=` rather than `==`: a count that overshoots between two looks never comes back.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use std::time::Duration;
/// let mut seen = 0;
/// let three = acemq_tests::eventually(Duration::from_secs(1), "three looks", async || {
///     seen += 1;
///     if seen >= 3 { Ok(seen) } else { Err(seen) }
/// })
/// .await;
/// assert_eq!(three, 3);
/// # })
/// ```
#[track_caller]
pub fn eventually<T, E: Debug>(
    deadline: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let start = Instant::now();
        loop {
            let last = match look().await {
                Ok(value) => return value,
                Err(last) => last,
            };
            // The clock of the machine, since a test may have paused that of tokio.
            assert!(
                start.elapsed() < deadline,
                "{caller}: waited {deadline:?} in vain for {what}; the last that was seen: {last:?}"
            );
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

/// Gives what `future` gives, or fails the test with a sentence that names `what` took longer than `deadline`.
#[track_caller]
pub fn within<F: Future>(deadline: Duration, what: &str, future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        let Ok(output) = tokio::time::timeout(deadline, future).await else {
            panic!("{caller}: {what} took longer than {deadline:?}");
        };
        output
    }
}

/// A name that starts with `stem` and that no other test, in this or another run, uses.
pub fn unique(stem: &str) -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    format!("{stem}-{}", &id[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[should_panic(expected = "in vain for a fourth message; the last that was seen: 3")]
    async fn a_wait_in_vain_names_what_was_awaited_and_seen() {
        eventually(Duration::from_millis(50), "a fourth message", async || Err::<(), _>(3)).await;
    }

    #[test]
    fn unique_names_differ_and_keep_their_stem() {
        let (one, two) = (unique("orders"), unique("orders"));
        assert_ne!(one, two);
        assert!(one.starts_with("orders-"));
    }
}
