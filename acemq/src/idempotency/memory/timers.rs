use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// When the time of a slot ends, unless the slot has moved on to another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub(super) at: u64,
    pub(super) slot: u32,
    pub(super) generation: u32,
}

/// What is to be done with the earliest [`Due`] of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Remove,
    Keep,
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

/// How many distances get a queue of their own; each operation looks at the front of all of them.
const QUEUES: usize = 8;

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

    /// Looks at the earliest of each queue while `judge` removes them, and at no more than `most` in all.
    pub(super) fn sweep(&mut self, mut most: usize, mut judge: impl FnMut(Due) -> Fate) {
        for queue in &mut self.queues {
            while let Some(due) = queue.dues.front() {
                if most == 0 || judge(*due) == Fate::Keep {
                    break;
                }
                queue.dues.pop_front();
                most -= 1;
            }
        }
        while let Some(Reverse(due)) = self.others.peek() {
            if most == 0 || judge(*due) == Fate::Keep {
                break;
            }
            self.others.pop();
            most -= 1;
        }
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
