//! Keeps a failure that repeats itself from filling the log.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// So many lines come through at once.
const BURST: u32 = 20;

/// After a burst, one line comes through in this time.
const INTERVAL: Duration = Duration::from_secs(5);

/// Lets a burst of lines through, and then one now and then, which says how many were left out.
#[derive(Debug, Default)]
pub(crate) struct Flood(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    used: u32,
    left_out: u64,
    /// When the last place in the burst became free.
    refilled: Option<Instant>,
}

impl Flood {
    /// Whether to write a line, and how many were left out before it.
    pub(crate) fn admit(&self) -> Option<u64> {
        let now = Instant::now();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *state.refilled.get_or_insert(now);
        let free = now.duration_since(since).as_secs() / INTERVAL.as_secs();
        if let Ok(free) = u32::try_from(free)
            && free > 0
        {
            state.used = state.used.saturating_sub(free);
            state.refilled = Some(now);
        }
        if state.used < BURST {
            state.used += 1;
            Some(std::mem::take(&mut state.left_out))
        } else {
            state.left_out += 1;
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_cut_to_a_burst_and_then_a_line_now_and_then_with_the_count_of_the_rest() {
        let flood = Flood::default();
        let lines = |count: usize| (0..count).filter_map(|_| flood.admit()).collect::<Vec<u64>>();
        assert_eq!(lines(100), [0; 20]);
        tokio::time::advance(INTERVAL).await;
        assert_eq!(lines(100), [80]);
        tokio::time::advance(Duration::from_secs(3_600)).await;
        let later = lines(100);
        assert_eq!((later.len(), later[0], later[1]), (20, 99, 0));
    }
}
