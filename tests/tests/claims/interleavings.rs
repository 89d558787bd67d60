//! Everything at once, in an order that nobody chose: many holders on few keys, over two stores on one table, with short and
//! long leases, calls that are given up half-way, a purge and sessions that the server ends.
//!
//! No clock of the database is read. Of a call it is known that it took effect between its start and its end, so from the
//! end of a successful claim until a lease after its start, nobody else can have the key; and so on. What is only possible
//! counts as nothing.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use acemq::idempotency::{Claim, ClaimStore, Fenced, MemoryStore, StoreError, Token, sql::SqlStore};
use acemq_tests::{database::Kind, needs};
use futures_util::future::BoxFuture;
use rand::{RngExt as _, seq::IndexedRandom as _};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::stores;

const TASKS: usize = 40;
const CLAIMS_OF_EACH: usize = 250;
/// How many claims a key sees, more or less, and among how many keys a task chooses.
const CLAIMS_OF_A_KEY: usize = 20;
const KEYS_AT_A_TIME: usize = 6;
const LENGTHS: [Duration; 3] = [Duration::from_millis(5), Duration::from_millis(30), Duration::from_secs(30)];
/// A database counts in milliseconds, and rounds down.
const ROUNDING: Duration = Duration::from_millis(2);

/// What is certain of a key.
#[derive(Debug, Clone)]
struct Fact {
    key: usize,
    token: Token,
    during: Range<Instant>,
    answer_to_others: Claim,
}

#[derive(Debug, Clone)]
struct Asked {
    key: usize,
    token: Token,
    during: Range<Instant>,
    answer: Claim,
}

#[derive(Debug, Default)]
struct Log {
    facts: Vec<Fact>,
    asked: Vec<Asked>,
    /// Confirmations that were asked for, whatever came of them: the key and the start.
    confirmations: Vec<(usize, Instant)>,
}

impl Log {
    fn certain(&mut self, of: &Asked, length: Duration, answer_to_others: Claim) {
        let Range { start, end } = of.during;
        let during = end..(start + length).checked_sub(ROUNDING).unwrap();
        self.facts.push(Fact { key: of.key, token: of.token.clone(), during, answer_to_others });
    }

    /// From `now` on, nothing is certain any more of the claim of `token`.
    fn ends(&mut self, token: &Token, now: Instant) {
        for fact in self.facts.iter_mut().rev().take_while(|fact| fact.token == *token) {
            fact.during.end = fact.during.end.min(now);
        }
    }

    fn was_certain_until(&self, end: Instant) -> bool {
        self.facts.last().unwrap().during.end >= end
    }

    fn verify(&self) {
        for asked in &self.asked {
            let others = self.facts.iter().filter(|fact| fact.key == asked.key && fact.token != asked.token);
            for fact in others {
                if fact.during.start <= asked.during.start && asked.during.end <= fact.during.end {
                    assert_eq!(asked.answer, fact.answer_to_others, "{asked:?} contradicts {fact:?}");
                }
            }
            let confirmed = |(key, start): &(usize, Instant)| *key == asked.key && *start < asked.during.end;
            if asked.answer == Claim::Duplicate {
                assert!(
                    self.confirmations.iter().any(confirmed),
                    "nobody confirmed what {asked:?} says is a duplicate"
                );
            }
        }
    }
}

fn any(up_to: u64) -> u64 {
    rand::rng().random_range(0..up_to)
}

/// Waits for the answer or, now and then, not long enough for it. An answer that did not come is none.
async fn ask<T>(answer: BoxFuture<'_, Result<T, StoreError>>) -> Option<T> {
    let patience = if any(10) == 0 { any(2_000) } else { 60_000_000 };
    match timeout(Duration::from_micros(patience), answer).await {
        Err(_) | Ok(Err(StoreError::Unreachable { .. })) => None,
        Ok(answer) => Some(answer.unwrap()),
    }
}

async fn claim(
    store: &Arc<dyn ClaimStore>,
    key: usize,
    token: &Token,
    lease: Duration,
    log: &mut Log,
) -> Option<Claim> {
    let start = Instant::now();
    let answer = ask(store.claim(&key.to_string(), token, lease)).await?;
    let asked = Asked { key, token: token.clone(), during: start..Instant::now(), answer };
    if answer == Claim::Claimed {
        log.certain(&asked, lease, Claim::InProgress);
    }
    log.asked.push(asked);
    Some(answer)
}

/// Claims a key and does with it what a handler may do, and what it should not.
async fn act(stores: &[Arc<dyn ClaimStore>], key: usize, sessions_end: bool, log: &mut Log) {
    let store = |()| stores.choose(&mut rand::rng()).unwrap();
    let (token, lease) = (Token::random(), *LENGTHS.choose(&mut rand::rng()).unwrap());
    if claim(store(()), key, &token, lease, log).await != Some(Claim::Claimed) {
        sleep(Duration::from_millis(any(8))).await;
        return;
    }
    let name = key.to_string();
    loop {
        sleep(Duration::from_millis(any(8))).await;
        let start = Instant::now();
        let asked = |answer| Asked { key, token: token.clone(), during: start..Instant::now(), answer };
        let what = any(6);
        let answer = match what {
            0 | 1 => {
                let answer = ask(store(()).renew(&name, &token, lease)).await;
                if answer == Some(Fenced::Held) {
                    log.certain(&asked(Claim::Claimed), lease, Claim::InProgress);
                }
                answer
            }
            2 => match claim(store(()), key, &token, lease, log).await {
                Some(Claim::Claimed) => Some(Fenced::Held),
                Some(_) => Some(Fenced::Lost),
                None => None,
            },
            3 => {
                let certain = log.facts.last().unwrap().during.end;
                log.ends(&token, start);
                let answer = ask(store(()).release(&name, &token)).await;
                // A session that ended after the release did not tell of it, and the second try finds nothing to release.
                let lost = answer == Some(Fenced::Lost) && !sessions_end;
                assert!(!lost || certain < Instant::now(), "{name} was held and could not be released");
                return;
            }
            _ => {
                let retention = *LENGTHS.choose(&mut rand::rng()).unwrap();
                log.confirmations.push((key, start));
                let certain = log.facts.last().unwrap().during.end;
                log.ends(&token, start);
                let answer = ask(store(()).confirm(&name, &token, retention)).await;
                match answer {
                    Some(Fenced::Held) => log.certain(&asked(Claim::Claimed), retention, Claim::Duplicate),
                    // As with a release, but only if the retention has ended since.
                    Some(Fenced::Lost) if !sessions_end || start + retention > Instant::now() => {
                        assert!(certain < Instant::now(), "{name} was held and could not be confirmed");
                    }
                    Some(Fenced::Lost) | None => {}
                }
                return;
            }
        };
        match answer {
            Some(Fenced::Held) => {}
            Some(Fenced::Lost) => {
                assert!(!log.was_certain_until(Instant::now()), "{name} was held, and {what} found it lost");
                return;
            }
            None => return,
        }
    }
}

async fn no_answer_contradicts_another(stores: Vec<Arc<dyn ClaimStore>>, sessions_end: bool) {
    let stores: Arc<[_]> = stores.into();
    let count = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (stores, count) = (Arc::clone(&stores), Arc::clone(&count));
        tasks.spawn(async move {
            let mut log = Log::default();
            for _ in 0..CLAIMS_OF_EACH {
                let first = count.fetch_add(1, Ordering::Relaxed) / CLAIMS_OF_A_KEY;
                let key = rand::rng().random_range(first..first + KEYS_AT_A_TIME);
                act(&stores, key, sessions_end, &mut log).await;
                if any(50) == 0 {
                    ask(stores[0].purge(3)).await;
                }
            }
            log
        });
    }
    let mut whole = Log::default();
    for log in tasks.join_all().await {
        whole.facts.extend(log.facts);
        whole.asked.extend(log.asked);
        whole.confirmations.extend(log.confirmations);
    }
    for answer in [Claim::Claimed, Claim::InProgress, Claim::Duplicate] {
        let count = whole.asked.iter().filter(|asked| asked.answer == answer).count();
        assert!(count > 100, "{count} answers are {answer:?}: too few to show anything");
    }
    whole.verify();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_contradicts_another_in_memory() {
    no_answer_contradicts_another(vec![Arc::new(MemoryStore::new())], false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_contradicts_another_in_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    let (one, _) = stores::sqlite(dir.path()).await;
    let two = SqlStore::connect_sqlite(stores::sqlite_options(dir.path()));
    no_answer_contradicts_another(vec![Arc::new(one), Arc::new(two)], false).await;
}

/// Two stores on one table whose sessions the server ends, one after the other, if `kill` says how.
async fn in_a_database(kind: Kind, kill: Option<&'static str>) {
    let first = stores::shared(kind).await;
    let both = vec![first.store, stores::open(kind, &first.url)];
    let killer = tokio::spawn(async move {
        let Some(kill) = kill else { return };
        let server = acemq_tests::database::shared(kind).await;
        loop {
            // The session may have ended by itself.
            let _ = server.try_sql(&first.url, kill).await;
            sleep(Duration::from_millis(20)).await;
        }
    });
    no_answer_contradicts_another(both, kill.is_some()).await;
    killer.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_contradicts_another_in_postgres() {
    needs!(Postgres);
    in_a_database(Kind::Postgres, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_contradicts_another_in_mariadb() {
    needs!(MariaDb);
    in_a_database(Kind::MariaDb, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_contradicts_another_while_postgres_ends_sessions() {
    needs!(Postgres);
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1";
    in_a_database(Kind::Postgres, Some(kill)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_contradicts_another_while_mariadb_ends_sessions() {
    needs!(MariaDb);
    let kill = "SET @id = (SELECT id FROM information_schema.processlist \
                WHERE db = database() AND id <> connection_id() ORDER BY rand() LIMIT 1); \
                EXECUTE IMMEDIATE concat('KILL ', @id)";
    in_a_database(Kind::MariaDb, Some(kill)).await;
}
