//! What the letters of the ledger ask their handlers to do, and the consumers that do it.

use std::time::Duration;

use acemq::{Ack, Context, State, consumer};
use rand::{RngExt, rngs::StdRng};
use serde::{Deserialize, Serialize};

use super::book::Book;

/// A message of the ledger.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Letter {
    pub run: u64,
    pub number: u32,
    pub script: Script,
}

/// What its handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Script {
    Accept,
    /// Accepts after so many milliseconds.
    Slow(u64),
    /// Fails on this many attempts, then accepts.
    Fail(u32),
    /// Fails on every attempt.
    Always,
    Fatal,
    Reject,
    Park,
    /// Panics on its first attempt, then accepts.
    Panic,
    /// Is over its time on its first attempt, then accepts.
    TimeOut,
    /// Holds its delivery longer than the broker allows on its first run, then accepts.
    Hold(u64),
}

/// Where a letter has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Handled,
    DeadLetter,
    Parked,
}

impl Script {
    pub(crate) fn any(random: &mut StdRng, queue: &str) -> Self {
        match random.random_range(0..20) {
            0..=5 => Self::Accept,
            6 | 7 => Self::Slow(random.random_range(10..400)),
            8..=11 => Self::Fail(random.random_range(1..=2)),
            12 | 13 => Self::Always,
            14 => Self::Fatal,
            15 => Self::Reject,
            16 => Self::Park,
            17 | 18 => Self::Panic,
            _ if HOLDS.contains(&queue) => Self::Accept,
            _ => Self::TimeOut,
        }
    }

    pub(crate) fn end(self) -> End {
        match self {
            Self::Accept | Self::Slow(_) | Self::Fail(_) | Self::Panic | Self::TimeOut | Self::Hold(_) => End::Handled,
            Self::Always | Self::Fatal | Self::Reject => End::DeadLetter,
            Self::Park => End::Parked,
        }
    }
}

/// The queues that consumers work on, each with its most attempts and the queues in which its retries wait.
pub(crate) const WORK: [(&str, u32, &[&str]); 4] = [
    ("ledger.short", 4, &[]),
    ("ledger.rungs", 3, &["ledger.rungs.retry.1s"]),
    ("ledger.classic", 3, &["ledger.classic.retry.1s"]),
    ("ledger.claims", 4, &[]),
];

/// The queues whose handlers may take so long that the broker takes the delivery back.
pub(crate) const HOLDS: [&str; 2] = ["ledger.classic", "ledger.claims"];

#[consumer(queue = "ledger.short", declare = quorum, prefetch = 10, retry = fixed(4, "200ms"), timeout = "600ms")]
pub(crate) async fn short(letter: Letter, State(book): State<Book>, context: Context) -> Result<Ack, Failure> {
    act(letter, &book, &context).await
}

#[consumer(
    queue = "ledger.rungs",
    declare = quorum,
    concurrency = 4,
    retry = fixed(3, "1s", wait_in_broker_from = "1s"),
    timeout = "600ms"
)]
pub(crate) async fn rungs(letter: Letter, State(book): State<Book>, context: Context) -> Result<Ack, Failure> {
    act(letter, &book, &context).await
}

#[consumer(
    queue = "ledger.classic",
    declare = classic,
    retry = fixed(3, "1s", wait_in_broker_from = "1s"),
    timeout = "8s"
)]
pub(crate) async fn classic(letter: Letter, State(book): State<Book>, context: Context) -> Result<Ack, Failure> {
    act(letter, &book, &context).await
}

#[consumer(
    queue = "ledger.claims",
    declare = quorum,
    retry = fixed(4, "200ms"),
    timeout = "8s",
    idempotent(claim = "30s", in_progress_delay = "500ms")
)]
pub(crate) async fn claims(letter: Letter, State(book): State<Book>, context: Context) -> Result<Ack, Failure> {
    act(letter, &book, &context).await
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("attempt {0} fails")]
    Again(u32),
    #[error("there is no hope")]
    Fatal(#[source] acemq::Fatal),
}

async fn act(letter: Letter, book: &Book, context: &Context) -> Result<Ack, Failure> {
    let attempt = context.attempt();
    let before = book.called(letter, context.queue(), attempt);
    match letter.script {
        Script::Slow(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
        Script::Fail(times) if attempt <= times => return Err(Failure::Again(attempt)),
        Script::Always => return Err(Failure::Again(attempt)),
        Script::Fatal => return Err(Failure::Fatal(acemq::fatal("a fatal script"))),
        Script::Reject => return Ok(Ack::dead_letter("a script that rejects")),
        Script::Park => return Ok(Ack::park("a script that parks")),
        // Without the panic hook, which would print every one of them.
        Script::Panic if attempt == 1 => std::panic::resume_unwind(Box::new("a script that panics".to_owned())),
        Script::TimeOut if attempt == 1 => std::future::pending().await,
        Script::Hold(millis) if before == 0 => tokio::time::sleep(Duration::from_millis(millis)).await,
        Script::Accept | Script::Fail(_) | Script::Panic | Script::TimeOut | Script::Hold(_) => {}
    }
    book.accepted(letter);
    Ok(Ack::accept())
}
