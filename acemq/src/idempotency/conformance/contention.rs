use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    task::{JoinError, JoinSet},
    time::sleep,
};

use super::{
    Race,
    probe::{LONG, PAST_SHORT, Probe, SHORT, fresh},
};
use crate::idempotency::{Claim, ClaimStore, Fenced, Token};

/// The shortest retention.
const INSTANT: Duration = Duration::from_millis(1);

/// Many ask for an ended claim at once.
pub async fn an_ended_claim_is_taken_by_one(store: &Arc<dyn ClaimStore>, tasks: usize) {
    let keys: Arc<[String]> = (0..20).map(|_| fresh()).collect();
    for key in keys.iter() {
        let (at, token) = (Probe::of(store, key.clone()), Token::random());
        at.claim(&token, SHORT, Claim::Claimed, "a free key is claimed").await;
    }
    sleep(PAST_SHORT).await;
    let race = Race { tasks, ids: keys.len() };
    let winners = winners(store, &keys, race).await;
    for (key, winners) in keys.iter().zip(winners) {
        assert_eq!(winners, 1, "{winners} of {tasks} took over the ended claim of {key}");
    }
}

/// A holder asks for its claim again while others ask for it.
pub async fn a_retry_is_recognised_among_rivals(store: &Arc<dyn ClaimStore>) {
    let (key, token) = (fresh(), Token::random());
    Probe::of(store, key.clone()).claim(&token, LONG, Claim::Claimed, "a free key is claimed").await;
    let mut tasks = JoinSet::new();
    for number in 0..32 {
        let (store, key, token) = (Arc::clone(store), key.clone(), token.clone());
        tasks.spawn(async move {
            let at = Probe::of(&store, key);
            if number % 4 == 3 {
                at.claim(&token, LONG, Claim::Claimed, "one's own claim is recognised among others").await;
            } else {
                at.claim(&Token::random(), LONG, Claim::InProgress, "a live claim is nobody else's").await;
            }
        });
    }
    join(tasks).await;
}

/// A purge removes an ended claim and an ended confirmation and nothing else.
pub async fn a_purge_takes_only_what_has_ended(store: &Arc<dyn ClaimStore>) {
    let [claimed, confirmed, ended_claim, ended] = [(); 4].map(|()| Probe::fresh(store));
    let (token, other) = (Token::random(), Token::random());
    for (at, lease) in [(&claimed, LONG), (&confirmed, SHORT), (&ended_claim, SHORT), (&ended, LONG)] {
        at.claim(&token, lease, Claim::Claimed, "a free key is claimed").await;
    }
    confirmed.confirm(&token, LONG, Fenced::Held, "its holder confirms a claim").await;
    ended.confirm(&token, SHORT, Fenced::Held, "its holder confirms a claim").await;
    sleep(PAST_SHORT).await;
    assert_eq!(store.purge(0).await, Ok(0), "a purge of none removes none");
    purge_all(store).await;
    claimed.claim(&other, LONG, Claim::InProgress, "a live claim survives a purge").await;
    confirmed.claim(&other, LONG, Claim::Duplicate, "a live confirmation survives a purge").await;
    ended_claim.claim(&other, LONG, Claim::Claimed, "an ended claim is free").await;
    ended.claim(&other, LONG, Claim::Claimed, "a purged confirmation is free").await;
    ended.confirm(&token, LONG, Fenced::Lost, "a purged confirmation has no holder").await;
}

/// Claims, confirms and purges at the same time: none fails, and none loses what it holds.
pub async fn claims_hold_while_a_purge_runs(store: &Arc<dyn ClaimStore>) {
    let running = Arc::new(AtomicBool::new(true));
    let purge = tokio::spawn({
        let (store, running) = (Arc::clone(store), Arc::clone(&running));
        async move {
            while running.load(Ordering::Relaxed) {
                purge_all(&store).await;
                sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            for _ in 0..50 {
                let at = Probe::fresh(&store);
                let (one, two) = (Token::random(), Token::random());
                at.claim(&one, LONG, Claim::Claimed, "a free key is claimed").await;
                at.claim(&two, LONG, Claim::InProgress, "a purge leaves a live claim").await;
                // What ends at once is what the purge competes for.
                at.confirm(&one, INSTANT, Fenced::Held, "a live claim is confirmed").await;
            }
        });
    }
    join(tasks).await;
    running.store(false, Ordering::Relaxed);
    assert!(purge.await.is_ok(), "a purge fails while claims run");
}

/// Each id is claimed by all tasks at the same time, and won by exactly one of them.
pub async fn every_id_has_one_winner(store: &Arc<dyn ClaimStore>, race: Race) {
    let keys: Arc<[String]> = (0..race.ids).map(|_| fresh()).collect();
    let winners = winners(store, &keys, race).await;
    for (key, winners) in keys.iter().zip(winners) {
        assert_eq!(winners, 1, "{winners} of {} tasks won {key}", race.tasks);
    }
}

async fn winners(store: &Arc<dyn ClaimStore>, keys: &Arc<[String]>, race: Race) -> Vec<usize> {
    let winners: Arc<[AtomicUsize]> = keys.iter().map(|_| AtomicUsize::new(0)).collect();
    let mut racers = JoinSet::new();
    for task in 0..race.tasks {
        let (store, keys, winners) = (Arc::clone(store), Arc::clone(keys), Arc::clone(&winners));
        racers.spawn(async move {
            // Half of them in step, so that an id is asked for by many at once; half spread out, so that batches differ.
            let from = if task % 2 == 0 { 0 } else { task * keys.len() / race.tasks };
            for (key, winners) in keys.iter().zip(winners.iter()).cycle().skip(from).take(keys.len()) {
                let answer = store.claim(key, &Token::random(), LONG).await;
                if answer == Ok(Claim::Claimed) {
                    winners.fetch_add(1, Ordering::Relaxed);
                } else {
                    assert_eq!(answer, Ok(Claim::InProgress), "a race is won or lost");
                }
            }
        });
    }
    join(racers).await;
    winners.iter().map(|count| count.load(Ordering::Relaxed)).collect()
}

async fn purge_all(store: &Arc<dyn ClaimStore>) {
    loop {
        let removed = store.purge(500).await;
        assert!(
            removed.as_ref().is_ok_and(|removed| *removed <= 500),
            "a purge of 500 removes up to 500, and does not answer {removed:?}"
        );
        if removed == Ok(0) {
            return;
        }
    }
}

async fn join(mut tasks: JoinSet<()>) {
    while let Some(task) = tasks.join_next().await {
        assert!(!task.as_ref().is_err_and(JoinError::is_panic), "one of the tasks found the store at fault: {task:?}");
    }
}
