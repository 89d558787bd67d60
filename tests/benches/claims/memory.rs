//! The store in memory with a million live entries.

use std::time::{Duration, Instant};

use acemq::idempotency::{Claim, ClaimStore, Fenced, MemoryStore, Token};
use futures_util::FutureExt;

use crate::{LENGTH, setting, spread};

const ENTRIES: u32 = 1_000_000;

/// How many keys and tokens are made at once, while no time is taken.
const CHUNK: u32 = 1_000;

/// How long what is measured is remembered: so short that as much ends as is added.
const PASSING: Duration = Duration::from_millis(100);

pub(crate) fn measure() {
    println!("memory: {ENTRIES} live entries, keys of 43 bytes, one thread");
    let before = status("VmRSS:");
    // What was the most so far counts no more.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let store = MemoryStore::with_cap(2 * ENTRIES as usize);
    let mut longest = Duration::ZERO;
    let start = Instant::now();
    for number in 0..ENTRIES {
        let began = Instant::now();
        let (key, token) = (key("live", number), Token::random());
        assert_eq!(store.claim(&key, &token, LENGTH).now_or_never().unwrap(), Ok(Claim::Claimed));
        longest = longest.max(began.elapsed());
    }
    println!(
        "  a million claims: {:.0} ns each, the longest {:.1} ms; they take {} MiB at rest, {} MiB at the most",
        nanos(start.elapsed(), ENTRIES),
        longest.as_secs_f64() * 1e3,
        (status("VmRSS:") - before) / 1024,
        (status("VmHWM:") - before) / 1024,
    );
    let repeats: u32 = setting("CLAIMS_REPEATS", 5);
    let (mut each, mut longests) = (Vec::new(), Vec::new());
    for repeat in 0..repeats {
        let (mut longest, mut took) = (Duration::ZERO, Duration::ZERO);
        for chunk in 0..ENTRIES / CHUNK {
            let from = repeat * ENTRIES + chunk * CHUNK;
            let claims: Vec<_> = (from..from + CHUNK).map(|number| (key("passing", number), Token::random())).collect();
            let start = Instant::now();
            let mut began = start;
            for (key, token) in &claims {
                assert_eq!(store.claim(key, token, LENGTH).now_or_never().unwrap(), Ok(Claim::Claimed));
                assert_eq!(store.confirm(key, token, PASSING).now_or_never().unwrap(), Ok(Fenced::Held));
                let now = Instant::now();
                longest = longest.max(now - began);
                began = now;
            }
            took += began - start;
        }
        each.push(nanos(took, ENTRIES));
        longests.push(longest.as_secs_f64() * 1e3);
        let entries = store.len();
        assert!(entries < 2 * ENTRIES as usize - 100_000, "what ended went away: {entries} entries");
    }
    println!(
        "  claim and confirmation, with the ends of those before: {} ns each; the longest pair of a million {} ms",
        spread(&mut each),
        spread(&mut longests)
    );
}

fn key(kind: &str, number: u32) -> String {
    format!("{kind:<8}:{number:034}")
}

fn nanos(length: Duration, count: u32) -> f64 {
    length.as_secs_f64() * 1e9 / f64::from(count)
}

/// A line of this process's status, in KiB.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
