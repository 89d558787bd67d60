use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::probe::{LONG, PAST_SHORT, Probe, SHORT, fresh};
use crate::idempotency::{Claim, ClaimStore, Fenced, StoreError, Token};

/// A store that is set up says so.
pub async fn a_check_passes(store: &Arc<dyn ClaimStore>) {
    let checked = store.check().await;
    assert_eq!(checked, Ok(()), "a store that is set up passes its check");
}

/// Free, claimed, released, claimed, confirmed.
pub async fn states_follow_each_other(store: &Arc<dyn ClaimStore>) {
    let at = Probe::fresh(store);
    let (one, two, three) = (Token::random(), Token::random(), Token::random());
    at.claim(&one, LONG, Claim::Claimed, "a free key is claimed").await;
    at.claim(&two, LONG, Claim::InProgress, "a held key is in progress").await;
    at.release(&one, Fenced::Held, "its holder releases a claim").await;
    at.claim(&two, LONG, Claim::Claimed, "a released key is free").await;
    at.renew(&two, LONG, Fenced::Held, "its holder renews a claim").await;
    at.confirm(&two, LONG, Fenced::Held, "its holder confirms a claim").await;
    at.claim(&three, LONG, Claim::Duplicate, "a confirmed key is a duplicate").await;
    at.claim(&two, LONG, Claim::Duplicate, "a confirmed key is a duplicate to whoever confirmed it too").await;
    at.release(&two, Fenced::Lost, "a confirmed key is not released").await;
    at.renew(&two, SHORT, Fenced::Lost, "a confirmed key is not renewed").await;
    sleep(PAST_SHORT).await;
    at.claim(&three, LONG, Claim::Duplicate, "nothing shortens a retention").await;
}

/// Confirm, renew and release of a token that does not hold the key change nothing.
pub async fn only_the_holder_changes_a_claim(store: &Arc<dyn ClaimStore>) {
    let at = Probe::fresh(store);
    let (holder, stranger) = (Token::random(), Token::random());
    at.confirm(&stranger, LONG, Fenced::Lost, "a free key is not confirmed").await;
    at.renew(&stranger, LONG, Fenced::Lost, "a free key is not renewed").await;
    at.release(&stranger, Fenced::Lost, "a free key is not released").await;
    at.claim(&holder, LONG, Claim::Claimed, "a refused confirm leaves the key free").await;
    at.confirm(&stranger, LONG, Fenced::Lost, "a stranger does not confirm").await;
    at.renew(&stranger, SHORT, Fenced::Lost, "a stranger does not renew").await;
    at.release(&stranger, Fenced::Lost, "a stranger does not release").await;
    sleep(PAST_SHORT).await;
    at.claim(&stranger, LONG, Claim::InProgress, "a stranger's attempts change nothing").await;
    at.confirm(&holder, LONG, Fenced::Held, "the holder still confirms").await;
    at.confirm(&stranger, SHORT, Fenced::Lost, "a stranger does not confirm again").await;

    let at = Probe::fresh(store);
    at.claim(&holder, SHORT, Claim::Claimed, "a free key is claimed").await;
    sleep(PAST_SHORT).await;
    at.claim(&stranger, LONG, Claim::Claimed, "an ended lease is taken over").await;
    at.renew(&holder, LONG, Fenced::Lost, "who lost a lease does not renew it").await;
    at.release(&holder, Fenced::Lost, "who lost a lease does not release it").await;
    at.confirm(&holder, LONG, Fenced::Lost, "who lost a lease does not confirm it").await;
    at.confirm(&stranger, LONG, Fenced::Held, "who took it over confirms it").await;
}

/// A claim, a confirm and a renewal whose answer was lost may be asked again.
pub async fn a_retry_with_the_same_token_is_recognised(store: &Arc<dyn ClaimStore>) {
    let at = Probe::fresh(store);
    let token = Token::random();
    for _ in 0..3 {
        at.claim(&token, LONG, Claim::Claimed, "one's own claim is recognised").await;
    }
    for _ in 0..3 {
        at.renew(&token, LONG, Fenced::Held, "a renewal may be repeated").await;
    }
    for _ in 0..3 {
        at.confirm(&token, LONG, Fenced::Held, "a confirm may be repeated").await;
    }

    let at = Probe::fresh(store);
    at.claim(&token, SHORT, Claim::Claimed, "a free key is claimed").await;
    at.claim(&token, LONG, Claim::Claimed, "one's own claim is recognised").await;
    sleep(PAST_SHORT).await;
    at.claim(&Token::random(), LONG, Claim::InProgress, "a repeated claim has the later lease").await;
}

/// Keys that a database may take for one, or not take at all.
pub async fn odd_keys_are_told_apart(store: &Arc<dyn ClaimStore>) {
    let base = fresh();
    let mut keys: Vec<String> = ODD.iter().map(|odd| format!("{base}{odd}")).collect();
    let room = 255 - base.len();
    for (character, count) in [("x", 9_999), ("x", 10_000), ("x", room), ("ä", room)] {
        keys.push(format!("{base}{}", character.repeat(count)));
        keys.push(format!("{base}{}", character.repeat(count + 1)));
    }
    keys.sort_unstable();
    keys.dedup();
    let probes: Vec<_> = keys.into_iter().map(|key| Probe::of(store, key)).collect();
    for at in &probes {
        let token = Token::random();
        at.claim(&token, LONG, Claim::Claimed, "every key is one of its own").await;
    }
    let token = Token::random();
    for at in &probes {
        at.claim(&token, LONG, Claim::InProgress, "every key is found again").await;
    }
}

/// Ends of keys that some databases take for the same.
#[rustfmt::skip]
const ODD: &[&str] = &[
    "Ab", "ab", "AB", "ab ", "ab  ", " ab", "ab\t", "ab\n", "ab\0", "ab\0c", "\0", "abä", "aba\u{308}", "aba",
    "abß", "abss", "😀", "😁", "?", "%", "_", "'", "''", "\"", "\\", "\\'", "$1", "ı", "i", "İ", "\u{feff}ab",
    "ab\u{200b}", "ſ", "s", "１", "1", "01", "1.0", "null", "true", "{}", "\u{10ffff}",
];

/// A lease ends, and only then.
pub async fn an_ended_claim_can_be_taken_over(store: &Arc<dyn ClaimStore>) {
    let at = Probe::fresh(store);
    let (one, two) = (Token::random(), Token::random());
    at.claim(&one, SHORT, Claim::Claimed, "a free key is claimed").await;
    at.renew(&one, LONG, Fenced::Held, "its holder renews a claim").await;
    sleep(PAST_SHORT).await;
    at.claim(&two, LONG, Claim::InProgress, "a renewed lease has not ended").await;
    at.renew(&one, SHORT, Fenced::Held, "its holder renews a claim").await;
    sleep(PAST_SHORT).await;
    at.claim(&two, LONG, Claim::Claimed, "an ended lease is taken over").await;
    at.claim(&one, LONG, Claim::InProgress, "what was taken over is held").await;
}

/// A lease that has ended when it starts would let two run.
pub async fn a_length_of_nothing_is_refused(store: &Arc<dyn ClaimStore>) {
    let key = fresh();
    let token = Token::random();
    for length in [Duration::ZERO, Duration::from_micros(999)] {
        let refused = store.claim(&key, &token, length).await;
        assert!(
            matches!(refused, Err(StoreError::Misconfigured { .. })),
            "a lease of {length:?} is refused as a mistake in the set-up, not with {refused:?}"
        );
    }
    let at = Probe::of(store, key.clone());
    at.claim(&token, LONG, Claim::Claimed, "a refused lease leaves the key free").await;
    for length in [Duration::ZERO, Duration::from_micros(999)] {
        for (what, refused) in [
            ("renewal", store.renew(&key, &token, length).await),
            ("retention", store.confirm(&key, &token, length).await),
        ] {
            assert!(
                matches!(refused, Err(StoreError::Misconfigured { .. })),
                "a {what} of {length:?} is refused as a mistake in the set-up, not with {refused:?}"
            );
        }
    }
    at.claim(&Token::random(), LONG, Claim::InProgress, "what was refused leaves the claim").await;
}
