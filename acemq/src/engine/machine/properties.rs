//! What holds for every delivery, whatever happens to it.
//!
//! Each rule is also broken on purpose, by a saboteur between the machine and its driver, and has to be missed.

use std::time::Duration;

use proptest::{prelude::*, strategy::ValueTree};

use super::*;
use crate::policy::RetryPolicy;

/// A delivery and everything that happens to it: each number decides one answer.
#[derive(Debug, Clone)]
struct Story {
    rules: Rules,
    facts: Facts,
    choices: Vec<u8>,
}

/// What was seen of a delivery.
#[derive(Debug, Default)]
struct Trace {
    /// The rules that were broken, in their own words.
    broken: Vec<&'static str>,
}

/// A way to break the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sabotage {
    None,
    SettleTwice,
    AckUnconfirmed,
    KeepClaim,
    CountInProgress,
    BuryInProgress,
    SleepAfterClose,
    CountAfterCancel,
    GoOnForEver,
}

const STEPS: usize = 1_000;

const SETTLED_TWICE: &str = "a delivery is settled at most once";
const ACK_UNEARNED: &str = "an ack follows a confirmed and routed copy, an accepting handler or an earlier handling";
const CLAIM_KEPT: &str = "a taken claim ends confirmed or released";
const IN_PROGRESS_COUNTED: &str = "a message in progress keeps its attempt";
const IN_PROGRESS_BURIED: &str = "a message in progress goes nowhere but back";
const SLEPT: &str = "nothing waits after the close";
const COUNTED: &str = "no attempt changes after the handler was told to stop";
const ENDLESS: &str = "every path ends";

#[allow(clippy::too_many_lines)] // one arm for each effect
fn play(story: &Story, sabotage: Sabotage) -> Trace {
    let mut trace = Trace::default();
    let mut choices = story.choices.iter().copied().chain(std::iter::repeat(0));
    let mut choose = || choices.next().unwrap_or_default();
    let attempt = story.facts.attempt;
    let (mut machine, mut step) = Machine::start(story.rules, story.facts.clone());
    let (mut settled, mut claimed, mut in_progress, mut may_ack) = (0, false, false, false);
    let (mut closed, mut cancelled) = (false, false);
    for _ in 0..STEPS {
        match (sabotage, &mut step.effect) {
            (Sabotage::KeepClaim, Effect::Release) => step = machine.on(Event::Released),
            (Sabotage::CountInProgress, Effect::Move(copy)) if in_progress => copy.attempt += 1,
            (Sabotage::BuryInProgress, Effect::Move(copy)) if in_progress => copy.target = Target::DeadLetter,
            (Sabotage::SleepAfterClose, Effect::Requeue) if closed => {
                step.effect = Effect::Wait { delay: PAUSE, jitter: 0.0 };
            }
            (Sabotage::CountAfterCancel, Effect::Requeue) if cancelled => {
                let copy = Move { target: Target::Source, attempt: attempt + 1, reason: None, redeliveries: 0 };
                step.effect = Effect::Move(copy);
            }
            (Sabotage::AckUnconfirmed, Effect::Wait { .. }) => step.effect = Effect::Ack,
            (Sabotage::GoOnForEver, Effect::Done(_)) => step.effect = Effect::Run,
            (Sabotage::SettleTwice, Effect::Ack | Effect::Requeue) => settled += 1,
            _ => {}
        }
        let event = match &step.effect {
            Effect::Done(_) => {
                if claimed {
                    trace.broken.push(CLAIM_KEPT);
                }
                return trace;
            }
            Effect::Claim => match choose() % 4 {
                0 => {
                    claimed = true;
                    Event::Claimed(Claim::Claimed)
                }
                1 => {
                    may_ack = true;
                    Event::Claimed(Claim::Duplicate)
                }
                2 => {
                    in_progress = true;
                    Event::Claimed(Claim::InProgress)
                }
                _ => Event::StoreUnreachable,
            },
            Effect::Run => {
                let event = handler(choose());
                may_ack |= matches!(event, Event::Returned { ack: Ack::Accept, .. });
                event
            }
            Effect::Wait { .. } => {
                if closed {
                    trace.broken.push(SLEPT);
                }
                if choose() % 3 == 0 { Event::WaitEnded } else { Event::Elapsed }
            }
            Effect::Move(copy) => {
                if in_progress && copy.attempt != attempt {
                    trace.broken.push(IN_PROGRESS_COUNTED);
                }
                if in_progress && copy.target != Target::Source {
                    trace.broken.push(IN_PROGRESS_BURIED);
                }
                if cancelled && copy.attempt != attempt {
                    trace.broken.push(COUNTED);
                }
                match choose() % 5 {
                    0 | 1 => {
                        may_ack = true;
                        Event::Moved
                    }
                    2 => Event::Unroutable,
                    3 => Event::MoveRefused,
                    _ => Event::MoveFailed,
                }
            }
            Effect::Confirm => {
                claimed = false;
                Event::Confirmed([Some(Fenced::Held), Some(Fenced::Lost), None][usize::from(choose() % 3)])
            }
            Effect::Release => {
                claimed = false;
                Event::Released
            }
            effect @ (Effect::Ack | Effect::Requeue) => {
                settled += 1;
                if settled > 1 {
                    trace.broken.push(SETTLED_TWICE);
                }
                if *effect == Effect::Ack && !may_ack {
                    trace.broken.push(ACK_UNEARNED);
                }
                Event::Settled(if choose() % 4 == 0 { Settled::Gone } else { Settled::Done })
            }
        };
        // A wait that was cut short was cut short by something.
        let news = if matches!(event, Event::WaitEnded) { 1 + choose() % 3 } else { choose() % 24 };
        match news {
            1 => {
                machine.close();
                closed = true;
            }
            2 => {
                machine.cancel();
                (closed, cancelled) = (true, true);
            }
            3 => machine.lose_channel(),
            _ => {}
        }
        step = machine.on(event);
    }
    trace.broken.push(ENDLESS);
    trace
}

fn handler(choice: u8) -> Event {
    let age = [None, Some(Duration::from_secs(1)), Some(Duration::from_secs(86_400))][usize::from(choice % 3)];
    let ack = match choice % 9 {
        0 | 1 => Ack::accept(),
        2 | 3 => Ack::retry("no"),
        4 => Ack::retry_after("busy", Duration::from_secs(3)),
        5 => Ack::dead_letter("never"),
        6 => Ack::park("look"),
        7 => Ack::release(),
        _ => return Event::Interrupted,
    };
    Event::Returned { ack, age }
}

fn stories() -> impl Strategy<Value = Story> {
    let policy = prop_oneof![
        Just(RetryPolicy::none()),
        Just(RetryPolicy::fixed(4, Duration::from_secs(1))),
        Just(RetryPolicy::exponential(6, Duration::from_secs(10), Duration::from_secs(60))),
        Just(RetryPolicy::unbounded(Duration::from_secs(5)).give_up_after(Duration::from_secs(3_600))),
    ];
    let no_id = prop_oneof![Just(NoId::Run), Just(NoId::Park)];
    let claims =
        prop::option::of(no_id.prop_map(|no_id| ClaimRules { in_progress_delay: Duration::from_secs(5), no_id }));
    let unfit = prop_oneof![
        9 => Just(None),
        1 => Just(Some(Ack::poison("headers".to_owned()))),
    ];
    let redeliveries = prop_oneof![
        4 => Just(Redeliveries::Counted(0)),
        1 => (0_u32..5).prop_map(Redeliveries::Counted),
        1 => (0_u32..5).prop_map(Redeliveries::Uncounted),
    ];
    let facts = (1_u32..8, any::<bool>(), unfit, redeliveries)
        .prop_map(|(attempt, has_key, unfit, redeliveries)| Facts { attempt, unfit, has_key, redeliveries });
    (policy, claims, facts, prop::collection::vec(any::<u8>(), 0..120)).prop_map(|(policy, claims, facts, choices)| {
        Story { rules: Rules { policy, claims, crash_limit: 3 }, facts, choices }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn every_rule_holds_for_every_delivery(story in stories()) {
        let trace = play(&story, Sabotage::None);
        prop_assert!(trace.broken.is_empty(), "{:?}", trace.broken);
    }
}

#[test]
fn every_rule_is_missed_when_it_is_broken() {
    for (sabotage, rule) in [
        (Sabotage::SettleTwice, SETTLED_TWICE),
        (Sabotage::AckUnconfirmed, ACK_UNEARNED),
        (Sabotage::KeepClaim, CLAIM_KEPT),
        (Sabotage::CountInProgress, IN_PROGRESS_COUNTED),
        (Sabotage::BuryInProgress, IN_PROGRESS_BURIED),
        (Sabotage::SleepAfterClose, SLEPT),
        (Sabotage::CountAfterCancel, COUNTED),
        (Sabotage::GoOnForEver, ENDLESS),
    ] {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let stories = stories();
        let missed = (0..5_000).any(|_| {
            let story = stories.new_tree(&mut runner).unwrap().current();
            play(&story, sabotage).broken.contains(&rule)
        });
        assert!(missed, "{sabotage:?} went unnoticed");
    }
}
