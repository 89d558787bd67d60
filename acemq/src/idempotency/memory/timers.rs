use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// When the retention of an entry ends, unless it has got another end since.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub(super) at: u64,
    pub(super) hash: u64,
}

/// The ends of retentions, in the order in which they come.
///
/// Ends that lie equally far ahead when they are set come in the order in which they were set, so a queue per distance
/// needs no sorting. A service has few distances; whatever else it asks for goes to a heap.
#[derive(Debug, Default)]
pub(super) struct Timers {
    queues: Vec<Queue>,
    others: BinaryHeap<Reverse<Due>>,
}

#[derive(Debug)]
struct Queue {
    ahead: u64,
    dues: VecDeque<Due>,
}

/// How many distances get a queue of their own; claims and purges look at the front of all of them.
const QUEUES: usize = 8;

/// How many ended ones are taken out at once: few enough not to keep anybody waiting.
const BATCH: usize = 8;

impl Timers {
    pub(super) fn push(&mut self, ahead: u64, due: Due) {
        if let Some(queue) = self.queues.iter_mut().find(|queue| queue.ahead == ahead) {
            queue.dues.push_back(due);
        } else if self.queues.len() < QUEUES {
            self.queues.push(Queue { ahead, dues: VecDeque::from([due]) });
        } else {
            self.others.push(Reverse(due));
        }
    }

    /// Takes out some that have ended, once there is a batch of them.
    pub(super) fn take_batch(&mut self, now: u64) -> Option<[Due; BATCH]> {
        let is_over = |due: &Due| due.at <= now;
        // Those that several threads set at the same moment may stand a little out of order.
        let all_over = |queue: &&mut Queue| {
            queue.dues.get(BATCH - 1).is_some_and(is_over) && queue.dues.iter().take(BATCH).all(is_over)
        };
        let queue = self.queues.iter_mut().find(all_over)?;
        let mut batch = [Due::default(); BATCH];
        for (taken, due) in batch.iter_mut().zip(queue.dues.drain(..BATCH)) {
            *taken = due;
        }
        Some(batch)
    }

    /// Takes out one that has ended.
    pub(super) fn pop_ended(&mut self, now: u64) -> Option<Due> {
        let ended = self.queues.iter_mut().find_map(|queue| queue.dues.pop_front_if(|due| due.at <= now));
        ended.or_else(|| self.pop_other(now))
    }

    pub(super) fn pop_other(&mut self, now: u64) -> Option<Due> {
        self.others.peek().filter(|Reverse(due)| due.at <= now)?;
        self.others.pop().map(|Reverse(due)| due)
    }

    /// The earliest of all; stale ones included.
    pub(super) fn pop_earliest(&mut self) -> Option<Due> {
        let queue = self
            .queues
            .iter_mut()
            .filter(|queue| !queue.dues.is_empty())
            .min_by_key(|queue| queue.dues.front().copied());
        match (queue, self.others.peek()) {
            (Some(queue), Some(Reverse(other))) if queue.dues.front() > Some(other) => {
                self.others.pop().map(|Reverse(due)| due)
            }
            (Some(queue), _) => queue.dues.pop_front(),
            (None, _) => self.others.pop().map(|Reverse(due)| due),
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.others.len() + self.queues.iter().map(|q| q.dues.len()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_ends_nothing_before_its_time() {
        let mut timers = Timers::default();
        for at in [60, 10, 10, 10, 10, 10, 10, 20] {
            timers.push(5, Due { at, hash: at });
        }
        assert_eq!(timers.take_batch(59), None);
        assert_eq!(timers.take_batch(60).map(|batch| batch[0].at), Some(60));
        assert_eq!(timers.len(), 0);
    }
}
