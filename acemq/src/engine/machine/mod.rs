//! What a delivery becomes: one pure state machine for each, without a clock, without I/O.
//!
//! The driver asks [`Machine::start`] what to do first, does it, and tells the outcome as an [`Event`]; the answer is the
//! next [`Effect`], until [`Effect::Done`].

mod ending;
mod vocabulary;

use std::time::Duration;

pub(crate) use self::ending::Plan;
use self::ending::{Ending, Moving};
pub use self::vocabulary::Outcome;
pub(crate) use self::vocabulary::{ClaimRules, Effect, Event, Facts, Move, Note, Redeliveries, Rules, Step, Target};
use super::reason::Reason;
use crate::{
    handler::{Ack, DeadLetter, Park},
    idempotency::{Claim, Fenced},
    policy::{Decision, GiveUp, Place},
    registry::NoId,
    transport::Settled,
};

/// How often a move is tried again that the broker did not take, before the original goes back to its queue.
const MOVE_TRIES: u32 = 5;

/// How often a move is tried again that was never sent, as while the broker blocks publishers: about nine minutes in all,
/// well under the broker's consumer time-out.
const REFUSED_TRIES: u32 = 110;

/// The wait before something goes back to its queue, so that nothing goes round at full speed.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);

/// The longest wait in the consumer that no policy has checked: the broker takes a delivery back after half an hour.
pub(crate) const LONGEST_HELD: Duration = Duration::from_mins(25);

#[derive(Debug)]
enum State {
    Claiming,
    Running,
    Confirming,
    Releasing(Ending),
    Waiting(Ending),
    Moving(Moving),
    Settling(Outcome),
    Done,
}

/// How far a shutdown has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shutdown {
    No,
    /// Nothing waits any more.
    Closing,
    /// The handler was told to stop: what it returns, unless it accepts, says nothing about the message.
    Cancelled,
}

/// One delivery on its way.
#[derive(Debug)]
pub(crate) struct Machine {
    rules: Rules,
    attempt: u32,
    claimed: bool,
    shutdown: Shutdown,
    /// Whether the message may not go back by a requeue, since the broker counts those up to a limit.
    returns_as_copy: bool,
    /// The channel is gone: the broker delivers the message again, so no copy may be made.
    gone: bool,
    state: State,
}

impl Machine {
    /// Takes a delivery on.
    pub(crate) fn start(rules: Rules, facts: Facts) -> (Self, Step) {
        let mut machine = Self {
            rules,
            attempt: facts.attempt,
            claimed: false,
            shutdown: Shutdown::No,
            returns_as_copy: false,
            gone: false,
            state: State::Running,
        };
        if let Some(ack) = facts.unfit {
            let step = machine.returned(ack, None);
            return (machine, step);
        }
        if let Some(ending) = machine.crashes(facts.redeliveries) {
            let step = machine.end(ending);
            return (machine, step);
        }
        let step = match rules.claims {
            None => Effect::Run.into(),
            Some(_) if facts.has_key => {
                machine.state = State::Claiming;
                Effect::Claim.into()
            }
            Some(ClaimRules { no_id: NoId::Run, .. }) => Effect::Run.noting(Note::Unprotected),
            Some(ClaimRules { no_id: NoId::Park, .. }) => {
                let ending = machine.set_aside(Target::Parked, Reason::NoId, Outcome::Parked);
                machine.end(ending)
            }
        };
        (machine, step)
    }

    /// From now on nothing waits.
    pub(crate) fn close(&mut self) {
        self.shutdown = self.shutdown.max(Shutdown::Closing);
    }

    /// The handler is told to stop.
    pub(crate) fn cancel(&mut self) {
        self.shutdown = Shutdown::Cancelled;
    }

    /// The channel of the delivery is gone.
    pub(crate) fn lose_channel(&mut self) {
        self.gone = true;
    }

    /// What the delivery is going to become, if nothing comes in between; nothing before a handler that runs has ended.
    pub(crate) fn plan(&self) -> Option<Plan<'_>> {
        match &self.state {
            State::Claiming | State::Running | State::Done => None,
            State::Confirming => Some(Plan::of(Outcome::Acked)),
            State::Settling(outcome) => Some(Plan::of(*outcome)),
            State::Moving(moving) => Some(moving.plan(Duration::ZERO)),
            State::Releasing(ending) | State::Waiting(ending) => Some(ending.plan()),
        }
    }

    fn closing(&self) -> bool {
        self.shutdown >= Shutdown::Closing
    }

    fn cancelled(&self) -> bool {
        self.shutdown == Shutdown::Cancelled
    }

    /// Takes what happened, and says what to do next.
    pub(crate) fn on(&mut self, event: Event) -> Step {
        match (std::mem::replace(&mut self.state, State::Done), event) {
            (State::Claiming, Event::Claimed(claim)) => self.claimed(claim),
            (State::Claiming, Event::StoreUnreachable) => {
                let step = self.end(Ending::Requeue { pause: PAUSE, outcome: Outcome::Requeued });
                Step { note: Some(Note::StoreUnreachable), ..step }
            }
            (State::Running, Event::Returned { ack, age }) => self.returned(ack, age),
            (State::Running, Event::Interrupted) => {
                self.cancel();
                self.free(Ending::Requeue { pause: Duration::ZERO, outcome: Outcome::Requeued })
            }
            (State::Confirming, Event::Confirmed(fenced)) => {
                let step = self.settle(Effect::Ack, Outcome::Acked);
                let note = match fenced {
                    Some(Fenced::Held) => None,
                    Some(Fenced::Lost) => Some(Note::ClaimLost),
                    None => Some(Note::ConfirmFailed),
                };
                Step { note, ..step }
            }
            (State::Releasing(ending), Event::Released) => {
                self.claimed = false;
                self.end(ending)
            }
            (State::Waiting(ending), Event::Elapsed) => self.elapsed(ending),
            (State::Waiting(ending), Event::WaitEnded) => self.wait_ended(&ending),
            (State::Moving(moving), Event::Moved) => self.settle(Effect::Ack, moving.outcome),
            (State::Moving(moving), Event::Unroutable) => self.unroutable(moving),
            (State::Moving(moving), Event::MoveFailed) => {
                self.not_moved(Moving { failed: moving.failed + 1, ..moving })
            }
            (State::Moving(moving), Event::MoveRefused) => {
                self.not_moved(Moving { refused: moving.refused + 1, ..moving })
            }
            (State::Settling(outcome), Event::Settled(settled)) => match settled {
                Settled::Done => Effect::Done(outcome).into(),
                Settled::Gone => Effect::Done(Outcome::Lost).into(),
            },
            // An answer that nobody asked for. Giving the message back is right whatever it was.
            (State::Done, _) => Effect::Done(Outcome::Lost).into(),
            (_, _) => self.settle(Effect::Requeue, Outcome::Requeued),
        }
    }

    fn claimed(&mut self, claim: Claim) -> Step {
        match claim {
            Claim::Claimed => {
                self.claimed = true;
                if self.closing() {
                    // No handler begins after the close: what was claimed meanwhile goes back, and is free.
                    return self.free(Ending::Requeue { pause: Duration::ZERO, outcome: Outcome::Requeued });
                }
                self.state = State::Running;
                Effect::Run.into()
            }
            Claim::Duplicate => self.settle(Effect::Ack, Outcome::Duplicate),
            Claim::InProgress => {
                let wait = self.rules.claims.map_or(PAUSE, |claims| claims.in_progress_delay);
                let copy = Move { target: Target::Source, attempt: self.attempt, reason: None, redeliveries: 0 };
                self.end(Ending::later(wait, 0.0, copy, Outcome::InProgress))
            }
        }
    }

    fn returned(&mut self, ack: Ack, age: Option<Duration>) -> Step {
        if ack == Ack::Accept {
            if self.claimed {
                self.claimed = false;
                self.state = State::Confirming;
                return Effect::Confirm.into();
            }
            return self.settle(Effect::Ack, Outcome::Acked);
        }
        if self.cancelled() {
            return self.free(Ending::Requeue { pause: Duration::ZERO, outcome: Outcome::Requeued });
        }
        let ending = match ack {
            Ack::Accept | Ack::Release => Ending::Requeue { pause: PAUSE, outcome: Outcome::Released },
            Ack::Retry { reason, after } => self.retry(reason, after, age),
            Ack::DeadLetter { reason, cause } => {
                let reason = match cause {
                    DeadLetter::Rejected => Reason::Rejected(reason),
                    DeadLetter::Fatal => Reason::Fatal(reason),
                };
                self.set_aside(Target::DeadLetter, reason, Outcome::Rejected)
            }
            Ack::Park { reason, cause } => {
                let reason = match cause {
                    Park::Asked => Reason::Parked(reason),
                    Park::Undecodable => Reason::Undecodable(reason),
                    Park::Poison => Reason::Poison(reason),
                };
                self.set_aside(Target::Parked, reason, Outcome::Parked)
            }
        };
        self.free(ending)
    }

    fn retry(&self, reason: String, after: Option<Duration>, age: Option<Duration>) -> Ending {
        let policy = &self.rules.policy;
        let (delay, place) = match policy.decide(self.attempt, age) {
            Decision::Wait { delay, place } => (delay, place),
            Decision::GiveUp(why) => {
                let reason = match why {
                    GiveUp::AttemptsExhausted => Reason::Exhausted { attempts: self.attempt, last: reason },
                    GiveUp::TooOld => Reason::TooOld { limit: policy.age_limit(), last: reason },
                };
                return self.set_aside(Target::DeadLetter, reason, Outcome::DeadLettered);
            }
        };
        let attempt = self.attempt.saturating_add(1);
        let (target, wait, jitter) = match (after, place) {
            // A wait that an error asks for has no rung of its own.
            (Some(after), _) => (Target::Source, after.min(LONGEST_HELD), 0.0),
            (None, Place::Broker) => (Target::Rung(delay), Duration::ZERO, 0.0),
            (None, Place::Consumer) => (Target::Source, delay, policy.jitter()),
        };
        Ending::later(wait, jitter, Move { target, attempt, reason: None, redeliveries: 0 }, Outcome::Retried)
    }

    fn set_aside(&self, target: Target, reason: Reason, outcome: Outcome) -> Ending {
        let copy = Move { target, attempt: self.attempt, reason: Some(reason), redeliveries: 0 };
        Ending::later(Duration::ZERO, 0.0, copy, outcome)
    }

    /// What becomes of a message that the broker had to take back.
    fn crashes(&mut self, redeliveries: Redeliveries) -> Option<Ending> {
        let limit = self.rules.crash_limit;
        let (count, counted) = match redeliveries {
            Redeliveries::Counted(count) => (count, true),
            Redeliveries::Uncounted(before) => (before.saturating_add(1), false),
        };
        // One more would be one too many: what goes back from here on goes as a copy, which the broker counts anew.
        self.returns_as_copy = limit > 0 && counted && count.saturating_add(1) >= limit;
        if limit == 0 || (counted && count < limit) {
            return None;
        }
        if count >= limit {
            return Some(self.set_aside(
                Target::DeadLetter,
                Reason::CrashLoop { redeliveries: count },
                Outcome::DeadLettered,
            ));
        }
        let copy = Move { target: Target::Source, attempt: self.attempt, reason: None, redeliveries: count };
        Some(Ending::later(Duration::ZERO, 0.0, copy, Outcome::Requeued))
    }

    /// Ends a delivery whose handler ran. The claim goes first, or the next delivery would find it taken.
    fn free(&mut self, ending: Ending) -> Step {
        if self.claimed {
            self.state = State::Releasing(ending);
            Effect::Release.into()
        } else {
            self.end(ending)
        }
    }

    fn end(&mut self, ending: Ending) -> Step {
        if self.gone {
            return Effect::Done(Outcome::Lost).into();
        }
        match ending {
            Ending::Requeue { pause, outcome } => {
                if pause.is_zero() || self.closing() {
                    return self.settle(Effect::Requeue, outcome);
                }
                let ending = if self.returns_as_copy {
                    let copy = Move { target: Target::Source, attempt: self.attempt, reason: None, redeliveries: 0 };
                    // Once only: a copy that does not arrive leaves nothing but the requeue.
                    self.returns_as_copy = false;
                    Ending::later(pause, 0.0, copy, outcome)
                } else {
                    Ending::Requeue { pause, outcome }
                };
                self.state = State::Waiting(ending);
                Effect::Wait { delay: pause, jitter: 0.0 }.into()
            }
            Ending::Move { wait, moving, .. } if wait.is_zero() => self.send(moving),
            Ending::Move { .. } if self.closing() => self.settle(Effect::Requeue, Outcome::Requeued),
            Ending::Move { wait, jitter, moving } => {
                self.state = State::Waiting(Ending::Move { wait, jitter, moving });
                Effect::Wait { delay: wait, jitter }.into()
            }
        }
    }

    fn send(&mut self, moving: Moving) -> Step {
        // Past the end of a shutdown no attempt is spent: the next process tries again with the same one.
        if self.cancelled() && moving.copy.attempt != self.attempt {
            return self.settle(Effect::Requeue, Outcome::Requeued);
        }
        let copy = moving.copy.clone();
        self.state = State::Moving(moving);
        Effect::Move(copy).into()
    }

    fn elapsed(&mut self, ending: Ending) -> Step {
        match ending {
            _ if self.gone => Effect::Done(Outcome::Lost).into(),
            Ending::Move { moving, .. } => self.send(moving),
            Ending::Requeue { outcome, .. } => self.settle(Effect::Requeue, outcome),
        }
    }

    fn wait_ended(&mut self, ending: &Ending) -> Step {
        match ending {
            Ending::Requeue { outcome, .. } => self.settle(Effect::Requeue, *outcome),
            Ending::Move { .. } => self.settle(Effect::Requeue, Outcome::Requeued),
        }
    }

    fn unroutable(&mut self, moving: Moving) -> Step {
        let Target::Rung(delay) = moving.copy.target else {
            return self.not_moved(Moving { failed: moving.failed + 1, ..moving });
        };
        let copy = Move { target: Target::Source, ..moving.copy };
        let step = self.end(Ending::later(delay.min(LONGEST_HELD), 0.0, copy, moving.outcome));
        Step { note: Some(Note::RungMissing(delay)), ..step }
    }

    fn not_moved(&mut self, moving: Moving) -> Step {
        if self.closing() || moving.failed > MOVE_TRIES || moving.refused > REFUSED_TRIES {
            let note = Note::MoveAbandoned(moving.copy.target);
            let step = self.end(Ending::Requeue { pause: PAUSE, outcome: Outcome::Requeued });
            return Step { note: Some(note), ..step };
        }
        let wait = backoff(moving.failed.saturating_add(moving.refused));
        self.end(Ending::Move { wait, jitter: 0.2, moving })
    }

    fn settle(&mut self, effect: Effect, outcome: Outcome) -> Step {
        if self.gone {
            return Effect::Done(Outcome::Lost).into();
        }
        self.state = State::Settling(outcome);
        effect.into()
    }
}

/// The wait before a move is tried again: doubling from a tenth of a second to five seconds.
fn backoff(failures: u32) -> Duration {
    Duration::from_millis(100 << failures.saturating_sub(1).min(6)).min(PAUSE)
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
