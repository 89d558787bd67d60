//! Chance, so that messages that failed together do not come back together.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::duration::LONGEST_WAIT_MS;

/// A source of jitter; seeded, it repeats itself.
#[derive(Debug)]
pub struct Jitter(Mutex<StdRng>);

impl Jitter {
    /// A source with a seed of its own.
    #[must_use]
    pub fn random() -> Self {
        Self(Mutex::new(StdRng::from_rng(&mut rand::rng())))
    }

    /// A source that gives the same numbers for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// Varies `delay` by up to `share` of it in both directions; never under a millisecond, never over ten years.
    #[must_use]
    pub fn apply(&self, delay: Duration, share: f64) -> Duration {
        let delay = delay.clamp(Duration::from_millis(1), Duration::from_millis(LONGEST_WAIT_MS));
        let share = share.clamp(0.0, 1.0);
        if share == 0.0 || share.is_nan() {
            return delay;
        }
        let chance: f64 = self.0.lock().unwrap_or_else(PoisonError::into_inner).random();
        delay.mul_f64(1.0 + (2.0 * chance - 1.0) * share).max(Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_spreads_both_ways_around_the_delay_and_stays_in_its_bounds() {
        let jitter = Jitter::seeded(7);
        let delay = Duration::from_secs(10);
        let draws: Vec<f64> = (0..10_000).map(|_| jitter.apply(delay, 0.2).as_secs_f64()).collect();
        assert!(draws.iter().all(|seconds| (8.0..=12.0).contains(seconds)));
        assert!(draws.iter().any(|seconds| *seconds < 8.1) && draws.iter().any(|seconds| *seconds > 11.9));
        let mean = draws.iter().sum::<f64>() / 10_000.0;
        assert!((9.95..=10.05).contains(&mean), "{mean}");
    }

    #[test]
    fn a_seed_repeats_itself() {
        let draw = |seed| Jitter::seeded(seed).apply(Duration::from_secs(1), 0.5);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn no_wait_is_under_a_millisecond_or_over_ten_years() {
        let jitter = Jitter::seeded(1);
        for _ in 0..1_000 {
            assert!(jitter.apply(Duration::from_millis(1), 1.0) >= Duration::from_millis(1));
        }
        assert_eq!(jitter.apply(Duration::ZERO, 0.0), Duration::from_millis(1));
        assert_eq!(jitter.apply(Duration::MAX, 0.0), Duration::from_millis(LONGEST_WAIT_MS));
        assert_eq!(jitter.apply(Duration::from_secs(1), f64::NAN), Duration::from_secs(1));
    }
}
