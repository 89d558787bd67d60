//! Which deliveries of a channel are still to be settled, and the fewest frames that settle some of them.

use std::collections::BTreeSet;

use crate::transport::Verdict;

/// What to tell the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// Acks one, or everything up to it.
    Ack { tag: u64, multiple: bool },
    /// Sends one back.
    Requeue { tag: u64 },
}

/// The delivery tags of one channel, which the broker counts from 1 without gaps.
///
/// A tag that the broker does not know, zero, or one that is settled twice makes it close the channel and redeliver
/// everything on it. So only tags that were delivered come through, and each once. `multiple` settles everything up to a
/// tag, and is used only where all of that is settled anyway.
#[derive(Debug, Default)]
pub(super) struct Tags {
    /// Every tag up to this one is settled.
    settled: u64,
    /// The settled ones above it, with gaps.
    ahead: BTreeSet<u64>,
    /// The acks of the round, kept for their allocation.
    acks: Vec<u64>,
}

impl Tags {
    /// Settles a batch. `delivered` is the highest tag that was handed out. Appends to `frames`, in the order in which they
    /// must be written, and returns how many tags were refused.
    pub(super) fn settle(
        &mut self,
        batch: impl IntoIterator<Item = (u64, Verdict)>,
        delivered: u64,
        frames: &mut Vec<Frame>,
    ) -> usize {
        let mut refused = 0;
        self.acks.clear();
        for (tag, verdict) in batch {
            // Tag zero is never above what is settled.
            let fresh = tag > self.settled && tag <= delivered && !self.ahead.contains(&tag);
            if !fresh {
                refused += 1;
                continue;
            }
            if tag == self.settled + 1 {
                self.settled = tag;
                while self.ahead.first() == Some(&(self.settled + 1)) {
                    self.ahead.pop_first();
                    self.settled += 1;
                }
            } else {
                self.ahead.insert(tag);
            }
            match verdict {
                Verdict::Ack => self.acks.push(tag),
                // Before every ack of this batch: an ack of many must not take it along.
                Verdict::Requeue => frames.push(Frame::Requeue { tag }),
            }
        }
        let prefix = self.acks.iter().copied().filter(|tag| *tag <= self.settled);
        let (count, last) = prefix.fold((0_usize, 0), |(count, last), tag| (count + 1, last.max(tag)));
        if count > 0 {
            frames.push(Frame::Ack { tag: last, multiple: count > 1 });
        }
        let alone = self.acks.iter().copied().filter(|tag| *tag > self.settled);
        frames.extend(alone.map(|tag| Frame::Ack { tag, multiple: false }));
        refused
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{collection, prelude::*};

    use super::*;

    fn frames(tags: &mut Tags, batch: &[(u64, Verdict)], delivered: u64) -> (Vec<Frame>, usize) {
        let mut frames = Vec::new();
        let refused = tags.settle(batch.iter().copied(), delivered, &mut frames);
        (frames, refused)
    }

    #[test]
    fn a_prefix_is_acked_by_one_frame() {
        let mut tags = Tags::default();
        let batch = [(2, Verdict::Ack), (1, Verdict::Ack), (3, Verdict::Ack)];
        let expected = vec![Frame::Ack { tag: 3, multiple: true }];
        assert_eq!(frames(&mut tags, &batch, 9), (expected, 0));
    }

    #[test]
    fn what_is_beyond_a_gap_is_acked_alone_until_the_gap_is_closed() {
        let mut tags = Tags::default();
        let first = frames(&mut tags, &[(2, Verdict::Ack), (4, Verdict::Ack)], 5).0;
        assert_eq!(first, [Frame::Ack { tag: 2, multiple: false }, Frame::Ack { tag: 4, multiple: false }]);
        // The prefix then reaches to 4, but of this batch only 1 and 3 are news, and 3 is the higher one.
        let second = frames(&mut tags, &[(3, Verdict::Ack), (1, Verdict::Ack)], 5).0;
        assert_eq!(second, [Frame::Ack { tag: 3, multiple: true }]);
    }

    #[test]
    fn a_requeue_is_written_before_the_ack_that_would_take_it_along() {
        let mut tags = Tags::default();
        let batch = [(1, Verdict::Ack), (3, Verdict::Ack), (2, Verdict::Requeue)];
        let expected = vec![Frame::Requeue { tag: 2 }, Frame::Ack { tag: 3, multiple: true }];
        assert_eq!(frames(&mut tags, &batch, 3), (expected, 0));
    }

    #[test]
    fn zero_an_unknown_tag_and_a_second_settlement_are_refused() {
        let mut tags = Tags::default();
        let batch = [(0, Verdict::Ack), (4, Verdict::Ack), (2, Verdict::Ack), (2, Verdict::Requeue)];
        let expected = vec![Frame::Ack { tag: 2, multiple: false }];
        assert_eq!(frames(&mut tags, &batch, 3), (expected, 3));
        assert_eq!(frames(&mut tags, &[(2, Verdict::Ack)], 3), (Vec::new(), 1));
    }

    /// What a broker makes of the frames; it complains of every tag that it does not know.
    fn apply(unsettled: &mut BTreeSet<u64>, frame: Frame, fate: &mut BTreeMap<u64, Verdict>) {
        let (tag, verdict, multiple) = match frame {
            Frame::Ack { tag, multiple } => (tag, Verdict::Ack, multiple),
            Frame::Requeue { tag } => (tag, Verdict::Requeue, false),
        };
        assert!(unsettled.contains(&tag), "406: unknown delivery tag {tag}");
        let taken: Vec<u64> = if multiple { unsettled.range(..=tag).copied().collect() } else { vec![tag] };
        for tag in taken {
            unsettled.remove(&tag);
            fate.insert(tag, verdict);
        }
    }

    proptest! {
        #[test]
        fn the_broker_ends_with_what_was_asked_for(
            wanted in collection::vec(any::<bool>(), 1..120),
            order in collection::vec(any::<prop::sample::Index>(), 0..300),
            sizes in collection::vec(1_usize..70, 1..40),
        ) {
            let last = u64::try_from(wanted.len()).unwrap();
            let verdict = |tag: u64| if wanted[usize::try_from(tag - 1).unwrap()] { Verdict::Ack } else { Verdict::Requeue };
            let picks: Vec<u64> = order.iter().map(|index| index.index(wanted.len()) as u64 + 1).collect();
            let mut tags = Tags::default();
            let mut unsettled: BTreeSet<u64> = (1..=last).collect();
            let mut fate = BTreeMap::new();
            let mut rest = picks.as_slice();
            for size in sizes.iter().cycle() {
                if rest.is_empty() { break; }
                let (batch, more) = rest.split_at((*size).min(rest.len()));
                rest = more;
                let batch: Vec<_> = batch.iter().map(|tag| (*tag, verdict(*tag))).collect();
                for frame in frames(&mut tags, &batch, last).0 {
                    apply(&mut unsettled, frame, &mut fate);
                }
            }
            let expected: BTreeMap<u64, Verdict> = picks.iter().map(|tag| (*tag, verdict(*tag))).collect();
            prop_assert_eq!(fate, expected);
        }
    }
}
