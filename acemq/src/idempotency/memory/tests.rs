use std::{collections::HashMap, time::Duration};

use proptest::prelude::*;
use tokio::time::advance;

use super::MemoryStore;
use crate::idempotency::{Claim, ClaimStore as _, Fenced, StoreError, Token};

const LEASE: Duration = Duration::from_mins(5);
const DAY: Duration = Duration::from_hours(24);

async fn handled(store: &MemoryStore, key: &str) {
    let token = Token::random();
    assert_eq!(store.claim(key, &token, LEASE).await, Ok(Claim::Claimed));
    assert_eq!(store.confirm(key, &token, DAY).await, Ok(Fenced::Held));
}

#[tokio::test(start_paused = true)]
async fn a_full_store_forgets_the_oldest_confirmation_and_never_a_claim() {
    let store = MemoryStore::with_cap(3);
    let (token, other) = (Token::random(), Token::random());
    assert_eq!(store.claim("held", &token, LEASE).await, Ok(Claim::Claimed));
    for key in ["first", "second", "third", "fourth"] {
        handled(&store, key).await;
    }
    assert_eq!(store.len(), 3);
    assert_eq!(store.claim("held", &other, LEASE).await, Ok(Claim::InProgress));
}

#[tokio::test(start_paused = true)]
async fn a_store_full_of_claims_refuses_another_and_takes_it_once_one_has_ended() {
    let store = MemoryStore::with_cap(2);
    let token = Token::random();
    for key in ["a", "b"] {
        assert_eq!(store.claim(key, &token, LEASE).await, Ok(Claim::Claimed));
    }
    assert_eq!(store.claim("c", &token, LEASE).await, Err(StoreError::Full { cap: 2 }));
    assert_eq!(store.claim("a", &token, LEASE).await, Ok(Claim::Claimed));
    advance(LEASE).await;
    assert_eq!(store.claim("c", &token, LEASE).await, Ok(Claim::Claimed));
}

#[tokio::test(start_paused = true)]
async fn a_store_told_to_refuse_forgets_nothing() {
    let store = MemoryStore::with_cap(1).refuse_when_full();
    handled(&store, "a").await;
    let token = Token::random();
    assert_eq!(store.claim("b", &token, LEASE).await, Err(StoreError::Full { cap: 1 }));
    assert_eq!(store.claim("a", &token, LEASE).await, Ok(Claim::Duplicate));
}

#[tokio::test(start_paused = true)]
async fn a_late_confirmation_holds_while_nobody_has_taken_over() {
    let store = MemoryStore::new();
    let token = Token::random();
    assert_eq!(store.claim("a", &token, LEASE).await, Ok(Claim::Claimed));
    advance(3 * LEASE).await;
    for n in 0..1_000 {
        handled(&store, &n.to_string()).await;
    }
    assert_eq!(store.confirm("a", &token, DAY).await, Ok(Fenced::Held));
}

#[tokio::test(start_paused = true)]
async fn ended_confirmations_leave_without_a_purge() {
    let store = MemoryStore::new();
    for n in 0..10_000 {
        handled(&store, &format!("a{n}")).await;
    }
    advance(DAY).await;
    for n in 0..10_000 {
        handled(&store, &format!("b{n}")).await;
    }
    assert!(store.len() < 10_500, "{}", store.len());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_stays_piles_up_nothing_behind_it() {
    let store = MemoryStore::new();
    let token = Token::random();
    for n in 0..200 {
        let held = format!("held{n}");
        assert_eq!(store.claim(&held, &token, DAY).await, Ok(Claim::Claimed));
    }
    for n in 0..100_000 {
        let key = format!("a{n}");
        assert_eq!(store.claim(&key, &token, DAY).await, Ok(Claim::Claimed));
        assert_eq!(store.release(&key, &token).await, Ok(Fenced::Held));
    }
    let ends: usize = (store.shards.iter()).map(|shard| super::lock(shard).ends()).sum();
    assert_eq!(ends, 0, "a claim has no end to wait for");
    assert_eq!(store.len(), 200);
}

#[tokio::test]
async fn a_length_of_nothing_is_refused() {
    let store = MemoryStore::new();
    let token = Token::random();
    let refused = store.claim("a", &token, Duration::ZERO).await.unwrap_err();
    assert_eq!(refused.to_string(), "the claim store is not usable: a lease of 0ns ends at once; it is at least 1ms");
    assert!(store.is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Claim(usize, usize, u64),
    Confirm(usize, usize, u64),
    Renew(usize, usize, u64),
    Release(usize, usize),
    Purge(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    // More lengths than there are queues, so that the heap has its part.
    let length = prop_oneof![Just(50), Just(100), 1..40_u64];
    prop_oneof![
        4 => (0..5_usize, 0..3_usize, length.clone()).prop_map(|(k, t, l)| Step::Claim(k, t, l)),
        2 => (0..5_usize, 0..3_usize, length.clone()).prop_map(|(k, t, l)| Step::Confirm(k, t, l)),
        1 => (0..5_usize, 0..3_usize, length).prop_map(|(k, t, l)| Step::Renew(k, t, l)),
        1 => (0..5_usize, 0..3_usize).prop_map(|(k, t)| Step::Release(k, t)),
        1 => (0..4_usize).prop_map(Step::Purge),
        2 => (1..60_u64).prop_map(Step::Wait),
    ]
}

/// What the store ought to do, in the plainest words: per key the holder, the end, and whether it is confirmed.
#[derive(Debug, Default)]
struct Model {
    entries: HashMap<usize, (usize, u64, bool)>,
    now: u64,
}

impl Model {
    fn claim(&mut self, key: usize, token: usize, length: u64) -> Claim {
        match self.entries.get(&key) {
            Some((_, end, true)) if *end > self.now => return Claim::Duplicate,
            Some((holder, end, false)) if *end > self.now && *holder != token => {
                return Claim::InProgress;
            }
            _ => {}
        }
        self.entries.insert(key, (token, self.now + length, false));
        Claim::Claimed
    }

    /// `None` where the store may say either: a confirmed entry past its end may have gone.
    fn fenced(&self, key: usize, token: usize, also_confirmed: bool) -> Option<Fenced> {
        match self.entries.get(&key) {
            Some((holder, end, true)) if *holder == token && also_confirmed => {
                (*end > self.now).then_some(Fenced::Held)
            }
            Some((holder, _, false)) if *holder == token => Some(Fenced::Held),
            _ => Some(Fenced::Lost),
        }
    }
}

proptest! {
    #[test]
    fn the_store_does_what_the_model_says(steps in proptest::collection::vec(step(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let store = MemoryStore::new();
            let tokens = [Token::random(), Token::random(), Token::random()];
            let mut model = Model::default();
            let ms = Duration::from_millis;
            for step in steps {
                match step {
                    Step::Claim(key, token, length) => {
                        let answer = store.claim(&key.to_string(), &tokens[token], ms(length)).await;
                        assert_eq!(answer, Ok(model.claim(key, token, length)));
                    }
                    Step::Confirm(key, token, length) => {
                        let answer = store.confirm(&key.to_string(), &tokens[token], ms(length)).await.unwrap();
                        let expected = model.fenced(key, token, true);
                        assert_eq!(answer, expected.unwrap_or(answer));
                        if answer == Fenced::Held {
                            model.entries.insert(key, (token, model.now + length, true));
                        }
                    }
                    Step::Renew(key, token, length) => {
                        let answer = store.renew(&key.to_string(), &tokens[token], ms(length)).await.unwrap();
                        assert_eq!(Some(answer), model.fenced(key, token, false));
                        if answer == Fenced::Held {
                            model.entries.insert(key, (token, model.now + length, false));
                        }
                    }
                    Step::Release(key, token) => {
                        let answer = store.release(&key.to_string(), &tokens[token]).await.unwrap();
                        assert_eq!(Some(answer), model.fenced(key, token, false));
                        if answer == Fenced::Held {
                            model.entries.remove(&key);
                        }
                    }
                    Step::Purge(most) => {
                        let before = store.len();
                        let removed = store.purge(most).await.unwrap();
                        assert!(removed <= most && store.len() == before - removed);
                        if removed < most {
                            model.entries.retain(|_, (_, end, _)| *end > model.now);
                            assert_eq!(store.len(), model.entries.len());
                        } else if removed > 0 {
                            // Which of them went is the store's choice; the rest goes too, to agree again.
                            store.purge(usize::MAX).await.unwrap();
                            model.entries.retain(|_, (_, end, _)| *end > model.now);
                        }
                    }
                    Step::Wait(length) => {
                        advance(ms(length)).await;
                        model.now += length;
                    }
                }
            }
        });
    }
}

#[cfg(feature = "testing")]
#[tokio::test(start_paused = true)]
async fn it_conforms() {
    use crate::idempotency::conformance::{Race, claim_store_conformance};
    claim_store_conformance(std::sync::Arc::new(MemoryStore::new()), Race::default()).await;
}
