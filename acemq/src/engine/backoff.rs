//! The waits between tries that have no limit.

use std::time::Duration;

use crate::policy::Jitter;

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// Waits that double from a tenth of a second to half a minute; the first try comes at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    failures: u32,
    jitter: Jitter,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { failures: 0, jitter: Jitter::random() }
    }

    /// The wait before the next try.
    pub(crate) fn next(&mut self) -> Duration {
        let failures = self.failures;
        self.failures = failures.saturating_add(1);
        match failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => {
                let wait = SHORTEST.saturating_mul(1 << doublings.min(9)).min(LONGEST);
                // Never past the longest wait: half of the spread is taken off beforehand.
                self.jitter.apply(wait.mul_f64(1.0 / 1.2), 0.2)
            }
        }
    }

    /// Starts over, after a success that lasted.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_try_comes_at_once_and_no_wait_is_over_half_a_minute() {
        let mut backoff = Backoff::new();
        assert_eq!(backoff.next(), Duration::ZERO);
        let second = backoff.next();
        assert!(second >= Duration::from_millis(60) && second <= Duration::from_millis(100), "{second:?}");
        let late: Vec<Duration> = (0..50).map(|_| backoff.next()).collect();
        assert!(late.iter().all(|wait| *wait <= LONGEST));
        assert!(late[20..].iter().all(|wait| *wait >= Duration::from_secs(15)));
        backoff.reset();
        assert_eq!(backoff.next(), Duration::ZERO);
    }
}
