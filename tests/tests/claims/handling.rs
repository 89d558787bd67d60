//! What consumers make of claims, on the embedded broker and in paused time.

use std::time::Duration;

use acemq::{
    idempotency::{Claim, ClaimStore, Fenced, MemoryStore, Scope, StoreError, Token},
    testing::TestApp,
};
use tokio::time::{Instant, sleep};

use crate::{
    board::{self, Board, PLAIN_LEASE, id, long_id},
    counts::counted,
    patchy::{Fault, Op, Patchy},
    stores::{DAY, LEASE},
};

pub(crate) async fn plain(board: &Board, store: impl ClaimStore) -> TestApp {
    TestApp::of::<board::plain>().state(board.clone()).idempotency(store).start().await
}

#[tokio::test(start_paused = true)]
async fn a_handled_message_is_accepted_and_not_handled_again_until_its_retention_ends() {
    let ((counts, _guard), board) = (counted(), Board::new());
    let app = plain(&board, MemoryStore::new()).await;
    for _ in 0..3 {
        app.put("plain", "accept", id("a"));
        app.settle().await;
    }
    assert_eq!(board.attempts(), [1]);
    assert_eq!((counts.deliveries("acked"), counts.deliveries("duplicate")), (1, 2));
    sleep(Duration::from_secs(3_601)).await;
    app.put("plain", "accept", id("a"));
    app.settle().await;
    assert_eq!(board.attempts(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn the_default_store_is_in_memory() {
    let board = Board::new();
    let app = TestApp::of::<board::plain>().state(board.clone()).start().await;
    for _ in 0..2 {
        app.put("plain", "accept", id("a"));
        app.settle().await;
    }
    assert_eq!(board.attempts(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_message_in_hand_waits_with_its_attempt_and_is_not_accepted() {
    let ((counts, _guard), board) = (counted(), Board::new());
    let app = plain(&board, MemoryStore::new()).await;
    app.put("plain", "waits", id("a"));
    board.begun(1).await;
    app.put("plain", "waits", id("a"));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(app.broker().depth("plain"), 2, "neither is accepted");
    let looked = counts.deliveries("in_progress");
    assert!((11..=12).contains(&looked), "a look each five seconds, and not {looked} in a minute");
    board.go();
    app.settle().await;
    assert_eq!(board.attempts(), [1]);
    assert_eq!((counts.deliveries("acked"), counts.deliveries("duplicate")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waits_for_one_that_fails_is_handled_in_its_turn() {
    let board = Board::new();
    let store = Patchy::default();
    // Somebody has it, and dies.
    let key = Scope::Queue.key("plain", "a");
    assert_eq!(store.sound().claim(&key, &Token::random(), PLAIN_LEASE).await, Ok(Claim::Claimed));
    let app = plain(&board, store).await;
    let start = Instant::now();
    app.put("plain", "accept", id("a"));
    app.settle().await;
    assert_eq!(board.attempts(), [1], "no attempt was spent on waiting");
    let waited = board.calls()[0].at - start;
    assert!((PLAIN_LEASE..PLAIN_LEASE + Duration::from_secs(6)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_failure_frees_the_message_for_its_next_attempt() {
    for (what, longest) in [("fail", 2), ("panic", 2), ("hang", 302)] {
        let board = Board::new();
        let app = plain(&board, MemoryStore::new()).await;
        app.put("plain", what, id("a"));
        app.settle().await;
        assert_eq!(board.attempts(), [1, 2], "{what}");
        let calls = board.calls();
        assert!(calls[1].at - calls[0].at <= Duration::from_secs(longest), "{what}: {calls:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_queue_handles_a_message_that_went_to_two() {
    let board = Board::new();
    let app = TestApp::of::<board::plain>().and::<board::other>().state(board.clone()).start().await;
    for queue in ["plain", "other", "plain", "other"] {
        app.put(queue, "accept", id("a"));
    }
    app.settle().await;
    let mut queues: Vec<_> = board.calls().into_iter().map(|call| call.queue).collect();
    queues.sort();
    assert_eq!(queues, ["other", "plain"]);
}

#[tokio::test(start_paused = true)]
async fn a_shared_scope_is_one_for_all_queues_and_other_libraries() {
    let (board, store) = (Board::new(), Patchy::default());
    let (token, theirs) = (Token::random(), "handled-elsewhere");
    assert_eq!(store.claim(theirs, &token, LEASE).await, Ok(Claim::Claimed));
    assert_eq!(store.confirm(theirs, &token, DAY).await, Ok(Fenced::Held));
    let app = TestApp::of::<board::shared_one>().and::<board::shared_two>();
    let app = app.state(board.clone()).idempotency(store).start().await;
    for queue in ["shared.one", "shared.two"] {
        app.put(queue, "accept", id("a"));
        app.put(queue, "accept", id(theirs));
        app.settle().await;
    }
    assert_eq!(board.attempts(), [1]);
}

#[tokio::test(start_paused = true)]
async fn consumers_keep_their_claims_in_the_stores_that_they_name() {
    let (board, orders, default) = (Board::new(), Patchy::default(), Patchy::default());
    let app = TestApp::of::<board::named>().and::<board::plain>().state(board.clone()).idempotency(default.clone());
    let app = app.with(|app| app.idempotency_named("orders", orders.clone())).start().await;
    app.put("named", "accept", id("a"));
    app.settle().await;
    assert_eq!((orders.asked(Op::Claim), default.asked(Op::Claim)), (1, 0));
    app.put("plain", "accept", id("a"));
    app.settle().await;
    assert_eq!((orders.asked(Op::Confirm), default.asked(Op::Confirm)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_message_without_an_id_is_handled_unprotected_and_counted_or_parked() {
    let ((counts, _guard), board) = (counted(), Board::new());
    let app = TestApp::of::<board::plain>().and::<board::strict>().state(board.clone()).start().await;
    for properties in [acemq::envelope::Properties::default(), id("")] {
        app.put("plain", "accept", properties.clone());
        app.put("strict", "accept", properties);
    }
    app.settle().await;
    assert_eq!(board.calls().iter().filter(|call| call.queue == "plain").count(), 2);
    assert_eq!(board.calls().len(), 2);
    assert_eq!(counts.claims("unprotected"), 2);
    let parked = app.parked("strict");
    assert_eq!(parked.len(), 2);
    assert!(parked[0].reason().is_some_and(|reason| reason.contains("id")), "{:?}", parked[0].reason());
}

#[tokio::test(start_paused = true)]
async fn an_id_of_any_length_is_told_apart_from_its_like() {
    let board = Board::new();
    let app = plain(&board, MemoryStore::new()).await;
    let long = "x".repeat(5_000);
    for id in [format!("{long}a"), format!("{long}b"), format!("{long}a"), "\u{0}".to_owned(), "b ".to_owned()] {
        app.put("plain", "accept", long_id(&id));
        app.settle().await;
    }
    assert_eq!(board.calls().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_key_of_the_message_stands_in_for_its_id() {
    let board = Board::new();
    let app = TestApp::of::<board::keyed>().state(board.clone()).start().await;
    for (text, name) in [("order-1 first", "a"), ("order-1 again", "b"), ("order-2 first", "a")] {
        app.put("keyed", text, id(name));
        app.settle().await;
    }
    assert_eq!(board.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_asked_spends_no_attempt_and_runs_no_handler() {
    for fault in [Fault::Away, Fault::Silent, Fault::Panics] {
        let ((counts, _guard), board, store) = (counted(), Board::new(), Patchy::default());
        let app = plain(&board, store.clone()).await;
        store.breaks(Op::Claim, fault);
        app.put("plain", "accept", id("a"));
        sleep(Duration::from_secs(62)).await;
        assert_eq!(board.calls().len(), 0, "{fault:?}");
        assert_eq!(app.broker().depth("plain"), 1, "{fault:?}: it is not accepted");
        let asked = store.asked(Op::Claim);
        assert!((4..=13).contains(&asked), "{fault:?}: {asked} claims in a minute");
        let counted = counts.claims("store_unreachable");
        assert!(counted >= 3, "{fault:?}: {counted}");
        store.heals();
        app.settle().await;
        assert_eq!(board.attempts(), [1], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_confirmation_that_cannot_be_told_is_tried_again_and_then_accepted_and_counted() {
    let ((counts, _guard), board, store) = (counted(), Board::new(), Patchy::default());
    let app = plain(&board, store.clone()).await;
    store.breaks(Op::Confirm, Fault::Away);
    app.put("plain", "accept", id("a"));
    app.settle().await;
    assert_eq!((board.attempts(), store.asked(Op::Confirm)), (vec![1], 3));
    assert_eq!((counts.claims("confirm_failed"), counts.deliveries("acked")), (1, 1));

    // It comes back in time.
    app.put("plain", "accept", id("b"));
    board.begun(2).await;
    sleep(Duration::from_millis(100)).await;
    store.heals();
    app.settle().await;
    assert_eq!((counts.claims("confirm_failed"), counts.deliveries("acked")), (1, 2));
    app.put("plain", "accept", id("b"));
    app.settle().await;
    assert_eq!(counts.deliveries("duplicate"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_store_holds_up_a_confirmation_for_a_bounded_time() {
    let (board, store) = (Board::new(), Patchy::default());
    let app = plain(&board, store.clone()).await;
    store.breaks(Op::Confirm, Fault::Silent);
    let start = Instant::now();
    app.put("plain", "accept", id("a"));
    app.settle().await;
    assert!(start.elapsed() <= Duration::from_secs(16), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_cannot_be_released_ends_by_itself() {
    let ((counts, _guard), board, store) = (counted(), Board::new(), Patchy::default());
    let app = plain(&board, store.clone()).await;
    store.breaks(Op::Release, Fault::Away);
    app.put("plain", "fail", id("a"));
    board.begun(1).await;
    app.settle().await;
    assert_eq!(board.attempts(), [1, 2], "the wait for the lease spent no attempt");
    assert_eq!(counts.claims("release_failed"), 1);
    let calls = board.calls();
    let waited = calls[1].at - calls[0].at;
    assert!((PLAIN_LEASE..PLAIN_LEASE + Duration::from_secs(7)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_is_purged_from_time_to_time_unless_that_is_turned_off() {
    for (interval, least, most) in
        [(None, 8, 13), (Some(Duration::from_secs(5)), 96, 160), (Some(Duration::ZERO), 0, 0)]
    {
        let (board, store) = (Board::new(), Patchy::default());
        let app = TestApp::of::<board::plain>().and::<board::other>().state(board.clone()).idempotency(store.clone());
        let app = match interval {
            Some(interval) => app.with(|app| app.purge_every(interval)),
            None => app,
        };
        let app = app.start().await;
        let token = Token::random();
        assert_eq!(store.sound().claim("ends", &token, Duration::from_secs(1)).await, Ok(Claim::Claimed));
        sleep(Duration::from_mins(10)).await;
        let purged = store.asked(Op::Purge);
        assert!((least..=most).contains(&purged), "{interval:?}: {purged} purges in ten minutes");
        assert_eq!(store.sound().is_empty(), least > 0, "{interval:?}");
        // One that fails is tried again, and stands in nobody's way.
        store.breaks(Op::Purge, Fault::Panics);
        sleep(Duration::from_mins(3)).await;
        store.heals();
        let before = store.asked(Op::Purge);
        sleep(Duration::from_mins(3)).await;
        assert_eq!(store.asked(Op::Purge) > before, least > 0, "{interval:?}");
        assert!(app.close().await.finished);
        let closed = store.asked(Op::Purge);
        sleep(Duration::from_mins(10)).await;
        assert_eq!(store.asked(Op::Purge), closed, "nothing is purged after the close");
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_the_wait_for_another_holder_at_once() {
    let (board, store) = (Board::new(), Patchy::default());
    let key = Scope::Queue.key("plain", "a");
    assert_eq!(store.sound().claim(&key, &Token::random(), LEASE).await, Ok(Claim::Claimed));
    let app = plain(&board, store).await;
    app.put("plain", "accept", id("a"));
    sleep(Duration::from_secs(1)).await;
    let (start, broker) = (Instant::now(), app.broker().clone());
    let drained = app.close().await;
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert!(drained.finished);
    assert_eq!((board.calls().len(), broker.ready("plain")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_full_store_in_memory_that_may_forget_nothing_is_waited_for() {
    let ((counts, _guard), board) = (counted(), Board::new());
    let app = plain(&board, MemoryStore::with_cap(1).refuse_when_full()).await;
    for name in ["a", "b"] {
        app.put("plain", "accept", id(name));
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(board.attempts(), [1]);
    sleep(Duration::from_secs(3_600)).await;
    app.settle().await;
    assert_eq!(board.attempts(), [1, 1], "once the retention of the first has ended there is room");
    assert!(counts.claims("store_unreachable") > 1);
    let full = StoreError::Full { cap: 1 }.to_string();
    assert!(full.contains("raise the cap"), "{full}");
}
