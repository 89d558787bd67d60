//! How long a claim holds: leases that are renewed, that end, and that nobody wanted.

use std::time::Duration;

use acemq::{
    idempotency::{Claim, ClaimStore, Fenced, Scope, Token},
    testing::TestApp,
};
use tokio::time::{Instant, sleep};

use crate::{
    board::{self, Board, HASTY_LEASE, PLAIN_LEASE, SLOW, id},
    counts::counted,
    handling::plain,
    patchy::{Fault, Op, Patchy},
    stores::LEASE,
};

#[tokio::test(start_paused = true)]
async fn a_handler_three_times_longer_than_its_lease_is_the_only_one_while_the_lease_is_renewed() {
    let ((counts, _guard), board, store) = (counted(), Board::new(), Patchy::default());
    let app = plain(&board, store.clone()).await;
    app.put("plain", "slow", id("a"));
    board.begun(1).await;
    for _ in 0..9 {
        sleep(Duration::from_secs(10)).await;
        let claim = store.sound().claim(&Scope::Queue.key("plain", "a"), &Token::random(), LEASE).await;
        assert_eq!(claim, Ok(Claim::InProgress));
    }
    app.settle().await;
    assert_eq!(board.attempts(), [1]);
    assert_eq!(counts.deliveries("acked"), 1);
    let renewed = store.asked(Op::Renew);
    assert!((8..=10).contains(&renewed), "a third of 30 s goes into 95 s nine times, and not {renewed}");
    assert_eq!((counts.claims("lease_lost"), counts.claims("claim_lost")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_lease_ends_is_told_to_stop_and_its_late_result_changes_nothing() {
    for (what, told, longest) in [("heeds", 1, PLAIN_LEASE + Duration::from_secs(11)), ("slow", 0, SLOW)] {
        let ((counts, _guard), board, store) = (counted(), Board::new(), Patchy::default());
        let app = plain(&board, store.clone()).await;
        store.breaks(Op::Renew, Fault::Away);
        let start = Instant::now();
        app.put("plain", what, id("a"));
        board.begun(1).await;
        sleep(PLAIN_LEASE).await;
        let (key, other) = (Scope::Queue.key("plain", "a"), Token::random());
        assert_eq!(store.sound().claim(&key, &other, LEASE).await, Ok(Claim::Claimed), "the lease has ended");
        app.settle().await;
        assert!(start.elapsed() <= longest + Duration::from_secs(1), "{what}: {:?}", start.elapsed());
        assert_eq!((board.attempts(), board.cancelled()), (vec![1], told), "{what}");
        assert_eq!((counts.claims("lease_lost"), counts.claims("claim_lost")), (1, 1), "{what}");
        assert!(counts.claims("renew_failed") >= 2, "{what}");
        assert_eq!(store.sound().renew(&key, &other, LEASE).await, Ok(Fenced::Held), "{what}: the taker still has it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_is_lost_at_its_end_and_no_later() {
    for fault in [Fault::Away, Fault::Silent] {
        let ((counts, _guard), board, store) = (counted(), Board::new(), Patchy::default());
        let app = plain(&board, store.clone()).await;
        store.breaks(Op::Renew, fault);
        app.put("plain", "heeds", id("a"));
        board.begun(1).await;
        sleep(PLAIN_LEASE * 299 / 300).await;
        assert_eq!((board.cancelled(), counts.claims("lease_lost")), (0, 0), "{fault:?}");
        sleep(Duration::from_millis(200)).await;
        assert_eq!((board.cancelled(), counts.claims("lease_lost")), (1, 1), "{fault:?}");
        app.settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_back_before_the_lease_ends_costs_no_lease() {
    // The first renewals fail after 10 and after 20 s; then, the less time is left, the sooner it is asked again.
    for (away, failures) in [(15, 1), (21, 2), (26, 3), (29, 5)] {
        let ((counts, _guard), board, store) = (counted(), Board::new(), Patchy::default());
        let app = plain(&board, store.clone()).await;
        app.put("plain", "heeds", id("a"));
        board.begun(1).await;
        store.breaks(Op::Renew, Fault::Away);
        sleep(Duration::from_secs(away)).await;
        store.heals();
        app.settle().await;
        assert_eq!((board.attempts(), board.cancelled()), (vec![1], 0), "{away} s");
        assert_eq!((counts.claims("renew_failed"), counts.claims("lease_lost")), (failures, 0), "{away} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_may_be_as_long_as_can_be_written() {
    let board = Board::new();
    let app = TestApp::of::<board::endless>().state(board.clone()).start().await;
    app.put("endless", "slow", id("a"));
    app.settle().await;
    assert_eq!(board.attempts(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_took_its_time_is_renewed_as_well() {
    // When the answer comes, two thirds of the lease have passed, or all of it.
    for slow in [HASTY_LEASE * 2 / 3 + Duration::from_millis(100), HASTY_LEASE + Duration::from_secs(1)] {
        let ((counts, _guard), board, store) = (counted(), Board::new(), Patchy::default());
        let app = TestApp::of::<board::hasty>().state(board.clone()).idempotency(store.clone()).start().await;
        store.breaks(Op::Claim, Fault::Slow(slow));
        app.put("hasty", "heeds", id("a"));
        app.settle().await;
        assert_eq!((board.attempts(), board.cancelled()), (vec![1], 0), "{slow:?}");
        assert_eq!((counts.claims("lease_lost"), counts.deliveries("acked")), (0, 1), "{slow:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_lease_ends_before_its_answer_comes_runs_no_handler_if_it_was_taken_over() {
    let ((counts, _guard), board, store) = (counted(), Board::new(), Patchy::default());
    let app = TestApp::of::<board::hasty>().state(board.clone()).idempotency(store.clone()).start().await;
    store.breaks(Op::Claim, Fault::Slow(HASTY_LEASE + Duration::from_secs(2)));
    app.put("hasty", "accept", id("a"));
    sleep(HASTY_LEASE + Duration::from_secs(1)).await;
    store.heals();
    let (key, other) = (Scope::Queue.key("hasty", "a"), Token::random());
    assert_eq!(store.sound().claim(&key, &other, LEASE).await, Ok(Claim::Claimed), "the lease has ended");
    sleep(LEASE / 2).await;
    assert_eq!(board.calls().len(), 0);
    app.settle().await;
    assert_eq!(board.attempts(), [1], "no attempt was spent on waiting");
    assert_eq!((counts.claims("lease_lost"), counts.claims("claim_lost")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_slower_than_the_lease_runs_no_handler_without_one() {
    let ((counts, _guard), board, store) = (counted(), Board::new(), Patchy::default());
    let app = TestApp::of::<board::hasty>().state(board.clone()).idempotency(store.clone()).start().await;
    for op in [Op::Claim, Op::Renew] {
        store.breaks(op, Fault::Slow(HASTY_LEASE + Duration::from_secs(2)));
    }
    app.put("hasty", "accept", id("a"));
    sleep(Duration::from_mins(1)).await;
    assert_eq!((board.calls().len(), app.broker().depth("hasty")), (0, 1));
    assert!(counts.claims("store_unreachable") >= 2);
    store.heals();
    app.settle().await;
    assert_eq!(board.attempts(), [1], "no attempt was spent on waiting");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_made_after_its_caller_gave_up_is_taken_back() {
    for late in [500, 1_500, 5_000, 10_000] {
        let (board, store) = (Board::new(), Patchy::default());
        let app = plain(&board, store.clone()).await;
        let start = Instant::now();
        store.breaks(Op::Claim, Fault::Late(Duration::from_millis(late)));
        app.put("plain", "accept", id("a"));
        sleep(Duration::from_millis(10)).await;
        assert_eq!(store.asked(Op::Claim), 1);
        // Nothing is claimed until the late claim is there.
        store.breaks(Op::Claim, Fault::Away);
        sleep(Duration::from_millis(late)).await;
        store.heals();
        app.settle().await;
        assert_eq!(board.attempts(), [1]);
        let waited = board.calls()[0].at - start;
        assert!(waited < PLAIN_LEASE * 2 / 3, "late by {late} ms: it waited for {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_does_not_block_its_message_for_a_lease() {
    for fault in [Fault::AnswerLost, Fault::Refused] {
        let (board, store) = (Board::new(), Patchy::default());
        let app = plain(&board, store.clone()).await;
        store.breaks(Op::Claim, fault);
        let start = Instant::now();
        app.put("plain", "accept", id("a"));
        sleep(Duration::from_millis(10)).await;
        assert_eq!(store.asked(Op::Claim), 1);
        store.heals();
        app.settle().await;
        assert_eq!(board.attempts(), [1]);
        let waited = board.calls()[0].at - start;
        assert!(waited < PLAIN_LEASE / 2, "{fault:?}: it waited for {waited:?}");
    }
}
