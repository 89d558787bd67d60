//! The table of what a delivery becomes, row by row.

use std::time::Duration;

use super::*;
use crate::policy::RetryPolicy;

mod ends;

const POLICY: RetryPolicy = RetryPolicy::exponential(3, Duration::from_secs(20), Duration::from_secs(60));

fn rules(claims: bool) -> Rules {
    let claims = claims.then_some(ClaimRules { in_progress_delay: Duration::from_secs(5), no_id: NoId::Run });
    Rules { policy: POLICY, claims, crash_limit: 10 }
}

fn facts(attempt: u32) -> Facts {
    Facts { attempt, unfit: None, has_key: true, redeliveries: Redeliveries::Counted(0) }
}

fn start(claims: bool, attempt: u32) -> Machine {
    let (mut machine, step) = Machine::start(rules(claims), facts(attempt));
    if claims {
        assert_eq!(step.effect, Effect::Claim);
        assert_eq!(machine.on(Event::Claimed(Claim::Claimed)).effect, Effect::Run);
    } else {
        assert_eq!(step.effect, Effect::Run);
    }
    machine
}

fn returned(ack: Ack) -> Event {
    Event::Returned { ack, age: None }
}

fn moved_to(step: &Step) -> (Target, u32, Option<String>) {
    let Effect::Move(copy) = &step.effect else { panic!("no move: {step:?}") };
    (copy.target, copy.attempt, copy.reason.as_ref().map(ToString::to_string))
}

/// Plays the end of a delivery whose copy arrives.
fn arrives(machine: &mut Machine) -> Outcome {
    assert_eq!(machine.on(Event::Moved).effect, Effect::Ack);
    settles(machine)
}

fn settles(machine: &mut Machine) -> Outcome {
    let Effect::Done(outcome) = machine.on(Event::Settled(Settled::Done)).effect else { panic!("not done") };
    outcome
}

#[test]
fn an_accepted_message_is_acked() {
    let mut machine = start(false, 1);
    assert_eq!(machine.on(returned(Ack::accept())).effect, Effect::Ack);
    assert_eq!(settles(&mut machine), Outcome::Acked);
}

#[test]
fn a_short_wait_is_held_and_ends_in_a_copy_with_the_next_attempt() {
    let mut machine = start(false, 1);
    let step = machine.on(returned(Ack::retry("no")));
    assert_eq!(step.effect, Effect::Wait { delay: Duration::from_secs(20), jitter: 0.2 });
    let step = machine.on(Event::Elapsed);
    assert_eq!(moved_to(&step), (Target::Source, 2, None));
    assert_eq!(arrives(&mut machine), Outcome::Retried);
}

#[test]
fn a_long_wait_goes_to_its_rung_at_once_and_without_jitter() {
    let mut machine = start(false, 2);
    let step = machine.on(returned(Ack::retry("no")));
    assert_eq!(moved_to(&step), (Target::Rung(Duration::from_secs(40)), 3, None));
    assert_eq!(arrives(&mut machine), Outcome::Retried);
}

#[test]
fn the_ways_to_be_set_aside_are_told_apart() {
    let undecodable = Ack::Park { reason: "no JSON".to_owned(), cause: Park::Undecodable };
    let fatal = Ack::DeadLetter { reason: "no such product".to_owned(), cause: DeadLetter::Fatal };
    for (attempt, ack, target, reason, outcome) in [
        (3, Ack::retry("no"), Target::DeadLetter, "attempts exhausted after 3 deliveries: no", Outcome::DeadLettered),
        (9, Ack::retry("no"), Target::DeadLetter, "attempts exhausted after 9 deliveries: no", Outcome::DeadLettered),
        (1, Ack::dead_letter("why"), Target::DeadLetter, "rejected by the handler: why", Outcome::Rejected),
        (1, fatal, Target::DeadLetter, "fatal: no such product", Outcome::Rejected),
        (1, Ack::park("look"), Target::Parked, "parked by the handler: look", Outcome::Parked),
        (1, undecodable, Target::Parked, "undecodable: no JSON", Outcome::Parked),
        (1, Ack::poison("minus one".to_owned()), Target::Parked, "poison: minus one", Outcome::Parked),
    ] {
        let mut machine = start(false, attempt);
        let step = machine.on(returned(ack));
        assert_eq!(moved_to(&step), (target, attempt, Some(reason.to_owned())));
        assert_eq!(arrives(&mut machine), outcome);
    }
}

#[test]
fn an_old_message_is_given_up_with_the_limit_in_its_reason() {
    let policy = POLICY.give_up_after(Duration::from_secs(3_600));
    let (mut machine, _) = Machine::start(Rules { policy, claims: None, crash_limit: 10 }, facts(1));
    let step = machine.on(Event::Returned { ack: Ack::retry("no"), age: Some(Duration::from_secs(3_600)) });
    assert_eq!(moved_to(&step), (Target::DeadLetter, 1, Some("too old, past 1h: no".to_owned())));
}

#[test]
fn a_released_message_goes_back_after_a_pause() {
    let mut machine = start(false, 1);
    assert_eq!(machine.on(returned(Ack::release())).effect, Effect::Wait { delay: PAUSE, jitter: 0.0 });
    assert_eq!(machine.on(Event::Elapsed).effect, Effect::Requeue);
    assert_eq!(settles(&mut machine), Outcome::Released);
}

#[test]
fn a_wait_that_an_error_asks_for_replaces_the_policys() {
    let mut machine = start(false, 2);
    let step = machine.on(returned(Ack::retry_after("busy", Duration::from_secs(7))));
    assert_eq!(step.effect, Effect::Wait { delay: Duration::from_secs(7), jitter: 0.0 });
    assert_eq!(moved_to(&machine.on(Event::Elapsed)), (Target::Source, 3, None));
    let mut machine = start(false, 1);
    let step = machine.on(returned(Ack::retry_after("busy", Duration::from_secs(86_400))));
    assert_eq!(step.effect, Effect::Wait { delay: LONGEST_HELD, jitter: 0.0 });
}

#[test]
fn a_message_that_cannot_be_handled_never_reaches_the_handler_or_the_store() {
    for claims in [false, true] {
        let unfit = Some(Ack::poison("attempt -1".to_owned()));
        let (mut machine, step) = Machine::start(rules(claims), Facts { unfit, ..facts(1) });
        assert_eq!(moved_to(&step), (Target::Parked, 1, Some("poison: attempt -1".to_owned())));
        assert_eq!(arrives(&mut machine), Outcome::Parked);
    }
}

#[test]
fn a_message_that_the_broker_took_back_too_often_is_set_aside_unseen() {
    for (redeliveries, count) in [(Redeliveries::Counted(10), 10), (Redeliveries::Uncounted(9), 10)] {
        let (mut machine, step) = Machine::start(rules(true), Facts { redeliveries, ..facts(1) });
        let (target, attempt, reason) = moved_to(&step);
        assert_eq!((target, attempt), (Target::DeadLetter, 1));
        assert!(
            reason.unwrap().starts_with(&format!("crash loop: the broker had to take the message back {count} times"))
        );
        assert_eq!(arrives(&mut machine), Outcome::DeadLettered);
    }
    let endless = Rules { crash_limit: 0, ..rules(false) };
    let (_, step) = Machine::start(endless, Facts { redeliveries: Redeliveries::Counted(1_000), ..facts(1) });
    assert_eq!(step.effect, Effect::Run);
}

#[test]
fn where_nobody_counts_the_count_is_written_on_a_copy_before_the_handler_runs() {
    let redeliveries = Redeliveries::Uncounted(3);
    let (mut machine, step) = Machine::start(rules(false), Facts { redeliveries, ..facts(2) });
    let Effect::Move(copy) = step.effect else { panic!("no copy") };
    assert_eq!((copy.target, copy.attempt, copy.redeliveries), (Target::Source, 2, 4));
    assert_eq!(arrives(&mut machine), Outcome::Requeued);
}

#[test]
fn the_last_return_before_the_limit_is_a_copy_that_the_broker_counts_anew() {
    let redeliveries = Redeliveries::Counted(9);
    let (mut machine, _) = Machine::start(rules(false), Facts { redeliveries, ..facts(2) });
    assert_eq!(machine.on(returned(Ack::release())).effect, Effect::Wait { delay: PAUSE, jitter: 0.0 });
    assert_eq!(moved_to(&machine.on(Event::Elapsed)), (Target::Source, 2, None));
    assert_eq!(arrives(&mut machine), Outcome::Released);
}

#[test]
fn a_claim_is_confirmed_after_the_handler_and_before_the_ack() {
    for (fenced, note) in
        [(Some(Fenced::Held), None), (Some(Fenced::Lost), Some(Note::ClaimLost)), (None, Some(Note::ConfirmFailed))]
    {
        let mut machine = start(true, 1);
        assert_eq!(machine.on(returned(Ack::accept())).effect, Effect::Confirm);
        let step = machine.on(Event::Confirmed(fenced));
        assert_eq!((step.effect, step.note), (Effect::Ack, note));
        assert_eq!(settles(&mut machine), Outcome::Acked);
    }
}

#[test]
fn a_handler_whose_writes_were_not_committed_has_failed() {
    let mut machine = start(true, 2);
    assert_eq!(machine.on(returned(Ack::accept())).effect, Effect::Confirm);
    let event = Event::NotCommitted { ack: Ack::retry("no"), age: None };
    assert_eq!(machine.on(event).effect, Effect::Release);
    assert!(matches!(machine.on(Event::Released).effect, Effect::Wait { .. } | Effect::Move(_)));
}

#[test]
fn writes_that_were_rolled_back_for_another_holder_send_the_message_back() {
    let mut machine = start(true, 2);
    assert_eq!(machine.on(returned(Ack::accept())).effect, Effect::Confirm);
    let step = machine.on(Event::RolledBack);
    assert_eq!((step.effect, step.note), (Effect::Requeue, Some(Note::ClaimLost)));
    assert_eq!(settles(&mut machine), Outcome::Requeued);
}

#[test]
fn a_claim_is_released_before_anything_else_happens_to_a_failure() {
    for ack in [Ack::retry("a"), Ack::dead_letter("b"), Ack::park("c"), Ack::release()] {
        let mut machine = start(true, 1);
        assert_eq!(machine.on(returned(ack)).effect, Effect::Release);
        assert_ne!(machine.on(Event::Released).effect, Effect::Release);
    }
}

#[test]
fn a_handled_message_is_acked_and_one_in_hand_waits_with_its_attempt() {
    let (mut machine, _) = Machine::start(rules(true), facts(2));
    assert_eq!(machine.on(Event::Claimed(Claim::Duplicate)).effect, Effect::Ack);
    assert_eq!(settles(&mut machine), Outcome::Duplicate);

    let (mut machine, _) = Machine::start(rules(true), facts(3));
    let step = machine.on(Event::Claimed(Claim::InProgress));
    assert_eq!(step.effect, Effect::Wait { delay: Duration::from_secs(5), jitter: 0.0 });
    assert_eq!(moved_to(&machine.on(Event::Elapsed)), (Target::Source, 3, None));
    assert_eq!(arrives(&mut machine), Outcome::InProgress);
}

#[test]
fn a_store_that_does_not_answer_spends_no_attempt() {
    let (mut machine, _) = Machine::start(rules(true), facts(1));
    let step = machine.on(Event::StoreUnreachable);
    assert_eq!(step.effect, Effect::Wait { delay: PAUSE, jitter: 0.0 });
    assert_eq!(step.note, Some(Note::StoreUnreachable));
    assert_eq!(machine.on(Event::Elapsed).effect, Effect::Requeue);
    assert_eq!(settles(&mut machine), Outcome::Requeued);
}

#[test]
fn a_message_without_an_id_runs_unprotected_or_is_parked() {
    let without = Facts { has_key: false, ..facts(1) };
    let (_, step) = Machine::start(rules(true), without.clone());
    assert_eq!((step.effect, step.note), (Effect::Run, Some(Note::Unprotected)));
    let park = Rules { claims: Some(ClaimRules { in_progress_delay: PAUSE, no_id: NoId::Park }), ..rules(true) };
    let (_, step) = Machine::start(park, without);
    assert_eq!(moved_to(&step).0, Target::Parked);
}

#[test]
fn a_missing_rung_is_counted_and_the_wait_spent_in_the_consumer() {
    let mut machine = start(false, 2);
    machine.on(returned(Ack::retry("no")));
    let step = machine.on(Event::Unroutable);
    assert_eq!(step.note, Some(Note::RungMissing(Duration::from_secs(40))));
    assert_eq!(step.effect, Effect::Wait { delay: Duration::from_secs(40), jitter: 0.0 });
    assert_eq!(moved_to(&machine.on(Event::Elapsed)), (Target::Source, 3, None));
    assert_eq!(arrives(&mut machine), Outcome::Retried);
}

#[test]
fn a_copy_that_does_not_arrive_is_tried_again_and_then_the_original_goes_back() {
    for event in [Event::MoveFailed, Event::Unroutable] {
        let mut machine = start(false, 1);
        let mut step = machine.on(returned(Ack::dead_letter("why")));
        for _ in 0..MOVE_TRIES {
            assert_eq!(moved_to(&step).0, Target::DeadLetter);
            let step_back = machine.on(event.clone());
            assert!(matches!(step_back.effect, Effect::Wait { .. }), "{step_back:?}");
            step = machine.on(Event::Elapsed);
        }
        assert_eq!(moved_to(&step).0, Target::DeadLetter);
        let step = machine.on(event);
        assert_eq!(step.note, Some(Note::MoveAbandoned(Target::DeadLetter)));
        assert_eq!(step.effect, Effect::Wait { delay: PAUSE, jitter: 0.0 });
        assert_eq!(machine.on(Event::Elapsed).effect, Effect::Requeue);
        assert_eq!(settles(&mut machine), Outcome::Requeued);
    }
}

#[test]
fn a_copy_that_cannot_be_sent_is_held_for_minutes() {
    let mut machine = start(false, 1);
    machine.on(returned(Ack::dead_letter("why")));
    let mut held = Duration::ZERO;
    let mut tries = 0;
    while let Effect::Wait { delay, .. } = machine.on(Event::MoveRefused).effect {
        held += delay;
        tries += 1;
        assert!(tries < 1_000, "it never ends");
        if matches!(machine.on(Event::Elapsed).effect, Effect::Requeue) {
            break;
        }
    }
    assert!(held > Duration::from_secs(480) && held < Duration::from_secs(900), "{held:?}");
}

#[test]
fn an_answer_that_nobody_asked_for_gives_the_message_back_once() {
    let mut machine = start(false, 1);
    assert_eq!(machine.on(Event::Moved).effect, Effect::Requeue);
    assert_eq!(settles(&mut machine), Outcome::Requeued);
    assert_eq!(machine.on(Event::Elapsed).effect, Effect::Done(Outcome::Lost));
}

#[test]
fn a_copy_in_place_of_a_requeue_is_made_once() {
    let redeliveries = Redeliveries::Counted(9);
    let (mut machine, _) = Machine::start(rules(false), Facts { redeliveries, ..facts(2) });
    machine.on(returned(Ack::release()));
    let mut step = machine.on(Event::Elapsed);
    for _ in 0..=MOVE_TRIES {
        let Effect::Move(copy) = step.effect else { panic!("no copy: {step:?}") };
        assert_eq!(copy.target, Target::Source);
        assert!(matches!(machine.on(Event::MoveFailed).effect, Effect::Wait { .. }));
        step = machine.on(Event::Elapsed);
    }
    assert_eq!(step.effect, Effect::Requeue);
}

#[test]
fn what_becomes_of_a_delivery_is_told_from_the_end_of_its_handler_on() {
    let told = |machine: &Machine| {
        let plan = machine.plan()?;
        Some((plan.outcome, plan.wait, plan.reason.map(ToString::to_string)))
    };
    let (mut machine, _) = Machine::start(rules(true), facts(1));
    assert_eq!(told(&machine), None);
    machine.on(Event::Claimed(Claim::Claimed));
    assert_eq!(told(&machine), None);
    machine.on(returned(Ack::retry("no")));
    let retried = Some((Outcome::Retried, Duration::from_secs(20), None));
    assert_eq!(told(&machine), retried);
    machine.on(Event::Released);
    assert_eq!(told(&machine), retried);
    machine.on(Event::Elapsed);
    assert_eq!(told(&machine), Some((Outcome::Retried, Duration::ZERO, None)));
    machine.on(Event::Moved);
    assert_eq!(told(&machine), Some((Outcome::Retried, Duration::ZERO, None)));
    settles(&mut machine);
    assert_eq!(told(&machine), None);

    let mut machine = start(true, 1);
    machine.on(returned(Ack::accept()));
    assert_eq!(told(&machine), Some((Outcome::Acked, Duration::ZERO, None)));
    let mut machine = start(false, 1);
    machine.on(returned(Ack::release()));
    assert_eq!(told(&machine).map(|(outcome, ..)| outcome), Some(Outcome::Released));
    let mut machine = start(false, 1);
    machine.on(returned(Ack::park("look")));
    let parked = Some((Outcome::Parked, Duration::ZERO, Some("parked by the handler: look".to_owned())));
    assert_eq!(told(&machine), parked);
}
