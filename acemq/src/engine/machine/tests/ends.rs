//! A shutdown, and the loss of a channel, at any step of a delivery.

use super::*;

#[test]
fn a_shutdown_ends_every_wait_and_gives_the_message_back_as_it_was() {
    let mut machine = start(false, 1);
    machine.on(returned(Ack::retry("no")));
    machine.close();
    assert_eq!(machine.on(Event::WaitEnded).effect, Effect::Requeue);
    assert_eq!(settles(&mut machine), Outcome::Requeued);

    let mut machine = start(false, 1);
    machine.close();
    assert_eq!(machine.on(returned(Ack::retry("no"))).effect, Effect::Requeue);

    let mut machine = start(false, 1);
    machine.on(returned(Ack::release()));
    assert_eq!(machine.on(Event::WaitEnded).effect, Effect::Requeue);
    assert_eq!(settles(&mut machine), Outcome::Released);
}

#[test]
fn a_failure_during_a_shutdown_still_goes_to_its_rung_or_its_dead_letter_queue() {
    let mut machine = start(false, 2);
    machine.close();
    assert_eq!(moved_to(&machine.on(returned(Ack::retry("no")))).0, Target::Rung(Duration::from_secs(40)));
    let mut machine = start(false, 3);
    machine.close();
    assert_eq!(moved_to(&machine.on(returned(Ack::retry("no")))).0, Target::DeadLetter);
    let step = machine.on(Event::MoveFailed);
    assert_eq!(step.effect, Effect::Requeue);
}

#[test]
fn what_a_handler_returns_after_it_was_told_to_stop_says_nothing_unless_it_accepts() {
    for ack in [Ack::retry("cancelled"), Ack::dead_letter("cancelled"), Ack::park("cancelled"), Ack::release()] {
        let mut machine = start(true, 3);
        machine.cancel();
        assert_eq!(machine.on(returned(ack)).effect, Effect::Release);
        assert_eq!(machine.on(Event::Released).effect, Effect::Requeue);
        assert_eq!(settles(&mut machine), Outcome::Requeued);
    }
    let mut machine = start(false, 3);
    machine.cancel();
    assert_eq!(machine.on(returned(Ack::accept())).effect, Effect::Ack);

    let mut machine = start(true, 1);
    assert_eq!(machine.on(Event::Interrupted).effect, Effect::Release);
    assert_eq!(machine.on(Event::Released).effect, Effect::Requeue);
}

#[test]
fn nothing_is_copied_or_settled_once_the_channel_is_gone() {
    for ack in [Ack::accept(), Ack::retry("no"), Ack::dead_letter("no"), Ack::release()] {
        let mut machine = start(false, 2);
        machine.lose_channel();
        assert_eq!(machine.on(returned(ack)).effect, Effect::Done(Outcome::Lost));
    }
    let mut machine = start(true, 1);
    machine.lose_channel();
    assert_eq!(machine.on(returned(Ack::accept())).effect, Effect::Confirm);
    assert_eq!(machine.on(Event::Confirmed(Some(Fenced::Held))).effect, Effect::Done(Outcome::Lost));

    let mut machine = start(false, 1);
    machine.on(returned(Ack::retry("no")));
    machine.lose_channel();
    assert_eq!(machine.on(Event::WaitEnded).effect, Effect::Done(Outcome::Lost));

    let mut machine = start(false, 1);
    machine.on(returned(Ack::accept()));
    assert_eq!(machine.on(Event::Settled(Settled::Gone)).effect, Effect::Done(Outcome::Lost));
}

/// A shutdown and a loss are seen between any two steps.
#[test]
fn whatever_comes_next_a_close_ends_it_and_a_lost_channel_too() {
    type Act = fn(&mut Machine);
    type Play = fn() -> (Machine, Event);
    let waiting: Play = || {
        let mut machine = start(false, 1);
        machine.on(returned(Ack::retry("no")));
        (machine, Event::Elapsed)
    };
    let pausing: Play = || {
        let mut machine = start(false, 1);
        machine.on(returned(Ack::release()));
        (machine, Event::Elapsed)
    };
    let releasing: Play = || {
        let mut machine = start(true, 1);
        machine.on(returned(Ack::retry("no")));
        (machine, Event::Released)
    };
    let asking: Play = || (Machine::start(rules(true), facts(1)).0, Event::StoreUnreachable);
    let in_progress: Play = || (Machine::start(rules(true), facts(1)).0, Event::Claimed(Claim::InProgress));
    let moving: Play = || {
        let mut machine = start(false, 2);
        machine.on(returned(Ack::retry("no")));
        (machine, Event::Unroutable)
    };
    let (close, cancel, lose): (Act, Act, Act) = (Machine::close, Machine::cancel, Machine::lose_channel);
    for (play, act, expected) in [
        (waiting, cancel, Effect::Requeue),
        (waiting, lose, Effect::Done(Outcome::Lost)),
        (pausing, lose, Effect::Done(Outcome::Lost)),
        (releasing, close, Effect::Requeue),
        (releasing, lose, Effect::Done(Outcome::Lost)),
        (asking, close, Effect::Requeue),
        (asking, lose, Effect::Done(Outcome::Lost)),
        (in_progress, close, Effect::Requeue),
        (in_progress, lose, Effect::Done(Outcome::Lost)),
        (moving, close, Effect::Requeue),
        (moving, lose, Effect::Done(Outcome::Lost)),
    ] {
        let (mut machine, event) = play();
        act(&mut machine);
        assert_eq!(machine.on(event.clone()).effect, expected, "{event:?}");
    }
    let (mut machine, _) = Machine::start(rules(true), facts(1));
    machine.close();
    assert_eq!(machine.on(Event::Claimed(Claim::Claimed)).effect, Effect::Release);
    assert_eq!(machine.on(Event::Released).effect, Effect::Requeue);
}
