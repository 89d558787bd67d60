use std::{collections::VecDeque, time::Duration};

use proptest::{collection, prelude::*};

use super::*;

struct Bench {
    window: Window<usize>,
    fates: BTreeMap<usize, Fate>,
    start: Instant,
}

impl Bench {
    fn new() -> Self {
        Self { window: Window::new(), fates: BTreeMap::new(), start: Instant::now() }
    }

    fn key(&self, sender: usize) -> Key {
        self.window.key(Some(&sender.to_string()), "e", "k")
    }

    fn push(&mut self, sender: usize) -> u64 {
        let deadline = self.start + Duration::from_secs(sender as u64);
        self.window.push(self.key(sender), true, deadline, sender)
    }

    fn round(&mut self, confirms: &[(u64, Option<usize>)]) {
        let mut confirms = confirms
            .iter()
            .map(|(number, returned)| Confirm {
                number: *number,
                ack: true,
                returned: returned.map(|sender| (self.key(sender), "NO_ROUTE".to_owned())),
            })
            .collect();
        let fates = &mut self.fates;
        let decide = |sender, fate| assert_eq!(fates.insert(sender, fate), None);
        self.window.round(&mut confirms, decide).unwrap();
    }
}

fn returned() -> Fate {
    Fate::Returned { text: "NO_ROUTE".to_owned() }
}

#[test]
fn a_confirm_without_a_return_decides_at_once() {
    let mut bench = Bench::new();
    let (a, _b) = (bench.push(0), bench.push(1));
    bench.round(&[(a, None)]);
    assert_eq!(bench.fates, BTreeMap::from([(0, Fate::Routed)]));
    assert_eq!(bench.window.live(), 1);
}

#[test]
fn a_return_belongs_to_the_message_in_it_and_not_to_the_confirm() {
    let mut bench = Bench::new();
    let (a, b) = (bench.push(0), bench.push(1));
    bench.round(&[(a, Some(1)), (b, None)]);
    assert_eq!(bench.fates, BTreeMap::from([(0, Fate::Routed), (1, returned())]));
}

#[test]
fn with_the_return_of_another_a_message_waits_for_a_confirm_that_found_none() {
    let mut bench = Bench::new();
    let (a, b, c, d) = (bench.push(0), bench.push(1), bench.push(2), bench.push(3));
    bench.round(&[(a, Some(1))]);
    assert_eq!(bench.fates, BTreeMap::new());
    // This one brings the return of `a`: had `a` been called routed, it would be lost.
    bench.round(&[(b, Some(0))]);
    assert_eq!(bench.fates, BTreeMap::from([(0, returned()), (1, returned())]));
    bench.round(&[(c, Some(3))]);
    assert!(!bench.fates.contains_key(&2));
    bench.round(&[(d, None)]);
    assert_eq!(bench.fates.get(&2), Some(&Fate::Routed));
    assert_eq!(bench.window.slots.len(), 0);
    assert!(bench.window.owed.is_empty());
}

#[test]
fn one_that_gave_up_keeps_its_place_and_takes_its_return() {
    let mut bench = Bench::new();
    let (a, b) = (bench.push(1), bench.push(2));
    assert_eq!(bench.window.next_deadline(), Some(bench.start + Duration::from_secs(1)));
    assert_eq!(bench.window.expire(bench.start + Duration::from_secs(1)), [1]);
    assert_eq!((bench.window.live(), bench.window.expired()), (1, 1));
    bench.round(&[(b, Some(1))]);
    assert!(bench.fates.is_empty());
    bench.round(&[(a, None)]);
    assert_eq!(bench.fates, BTreeMap::from([(2, Fate::Routed)]));
}

#[test]
fn of_several_with_one_key_all_that_are_outstanding_are_returned() {
    let mut bench = Bench::new();
    let key = bench.key(0);
    let deadline = bench.start;
    let numbers: Vec<u64> = (0..3).map(|sender| bench.window.push(key, true, deadline, sender)).collect();
    bench.round(&[(numbers[0], None)]);
    // The first return is taken for both that are left; the second one then is no stranger.
    bench.round(&[(numbers[1], Some(0))]);
    let late = bench.push(7);
    bench.round(&[(numbers[2], Some(0)), (late, None)]);
    let expected = [(0, Fate::Routed), (1, returned()), (2, returned()), (7, Fate::Routed)];
    assert_eq!(bench.fates, BTreeMap::from(expected));
    assert!(bench.window.owed.is_empty());
}

#[test]
fn a_return_after_all_with_its_key_were_called_returned_is_no_stranger() {
    let mut bench = Bench::new();
    let key = bench.key(0);
    let deadline = bench.start;
    let numbers: Vec<u64> = (0..2).map(|sender| bench.window.push(key, true, deadline, sender)).collect();
    let late = bench.push(7);
    bench.round(&[(numbers[0], Some(0)), (numbers[1], Some(7))]);
    assert_eq!(bench.fates, BTreeMap::from([(0, returned()), (1, returned())]));
    bench.round(&[(late, Some(0))]);
    assert_eq!(bench.fates.get(&7), Some(&returned()));
}

#[test]
fn a_return_of_nobody_is_an_error() {
    let mut bench = Bench::new();
    let a = bench.push(0);
    let key = bench.key(7);
    let mut confirms = vec![Confirm { number: a, ack: true, returned: Some((key, String::new())) }];
    assert_eq!(bench.window.round(&mut confirms, |_, _| {}), Err(StrayReturn));
}

#[test]
fn a_nack_is_a_nack_whatever_hangs_on_it() {
    let mut bench = Bench::new();
    let (a, b) = (bench.push(0), bench.push(1));
    let brought = Some((bench.key(1), "NO_ROUTE".to_owned()));
    let mut confirms = vec![Confirm { number: a, ack: false, returned: brought }];
    let fates = &mut bench.fates;
    bench
        .window
        .round(&mut confirms, |sender, fate| {
            drop(fates.insert(sender, fate));
        })
        .unwrap();
    bench.round(&[(b, None)]);
    assert_eq!(bench.fates, BTreeMap::from([(0, Fate::Nacked), (1, returned())]));
}

proptest! {
    /// A broker and a lapin: returns arrive before their confirm, confirms in any order and in heaps, and each confirm
    /// takes the oldest return that waits. Rounds cut the sequence of confirms anywhere.
    #[test]
    fn no_unroutable_message_is_ever_called_routed(
        routable in collection::vec(prop::bool::weighted(0.7), 1..150),
        burst in 1_usize..40,
        picks in collection::vec(any::<prop::sample::Index>(), 300),
        cuts in collection::vec(1_usize..12, 300),
        ids in 1_usize..150,
        early in collection::vec(any::<bool>(), 300),
    ) {
        let mut bench = Bench::new();
        let mut waiting: VecDeque<usize> = VecDeque::new();
        let mut open: Vec<(u64, usize, bool)> = Vec::new();
        let mut pushed = 0;
        let (mut picks, mut cuts, mut early) = (picks.iter().cycle(), cuts.iter().cycle(), early.iter().cycle());
        let mut queue = Vec::new();
        while pushed < routable.len() || !open.is_empty() {
            while open.len() < burst && pushed < routable.len() {
                let (key, deadline) = (bench.key(pushed % ids), bench.start);
                let number = bench.window.push(key, true, deadline, pushed);
                open.push((number, pushed, false));
                pushed += 1;
            }
            // The broker may return some long before it confirms them.
            for (_, sender, sent_back) in &mut open {
                if !routable[*sender] && !*sent_back && *early.next().unwrap() {
                    *sent_back = true;
                    waiting.push_back(*sender % ids);
                }
            }
            let pick = picks.next().unwrap().index(open.len());
            let (number, sender, sent_back) = open.swap_remove(pick);
            if !routable[sender] && !sent_back {
                waiting.push_back(sender % ids);
            }
            queue.push((number, waiting.pop_front()));
            if queue.len() >= *cuts.next().unwrap() || open.is_empty() {
                bench.round(&queue);
                queue.clear();
            }
        }
        prop_assert_eq!(bench.fates.len(), routable.len());
        prop_assert!(bench.window.owed.is_empty());
        for (sender, routed) in routable.iter().enumerate() {
            let alone = (sender % ids..routable.len()).step_by(ids).all(|other| routable[other]);
            match &bench.fates[&sender] {
                Fate::Routed => prop_assert!(routed),
                fate => prop_assert!(!routed || !alone, "{} is routed, not {:?}", sender, fate),
            }
        }
    }
}
