//! Consumers that do what their messages say, and note it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use acemq::{
    Ack, Context, State, Text, consumer,
    envelope::{Properties, Table, Value},
};
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

/// What handlers noted; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Board(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    calls: watch::Sender<Vec<Call>>,
    gate: Semaphore,
    cancelled: Mutex<usize>,
}

/// One call of a handler.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub queue: String,
    pub attempt: u32,
    pub at: Instant,
}

/// The lease of `plain`.
pub(crate) const PLAIN_LEASE: Duration = Duration::from_secs(30);

/// The lease of `hasty`.
pub(crate) const HASTY_LEASE: Duration = Duration::from_secs(6);

/// How long a handler takes that takes its time: more than three of the leases below.
pub(crate) const SLOW: Duration = Duration::from_secs(95);

impl Board {
    pub(crate) fn new() -> Self {
        let (calls, gate) = (watch::Sender::new(Vec::new()), Semaphore::new(0));
        Self(Arc::new(Inner { calls, gate, cancelled: Mutex::default() }))
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.0.calls.borrow().clone()
    }

    pub(crate) fn attempts(&self) -> Vec<u32> {
        self.calls().iter().map(|call| call.attempt).collect()
    }

    /// Waits until so many calls have begun.
    pub(crate) async fn begun(&self, count: usize) -> Vec<Call> {
        let mut calls = self.0.calls.subscribe();
        calls.wait_for(|calls| calls.len() >= count).await.unwrap().clone()
    }

    /// Lets a handler end that waits for it.
    pub(crate) fn go(&self) {
        self.0.gate.add_permits(1);
    }

    /// How many handlers saw that they were to stop.
    pub(crate) fn cancelled(&self) -> usize {
        *self.0.cancelled.lock().unwrap()
    }

    async fn act(&self, what: &str, context: &Context) -> Ack {
        let attempt = context.attempt();
        let call = Call { queue: context.queue().to_owned(), attempt, at: Instant::now() };
        self.0.calls.send_modify(|calls| calls.push(call));
        match what {
            "fail" if attempt == 1 => return Ack::retry("a first attempt fails"),
            // Without the panic hook, which would print it.
            "panic" if attempt == 1 => std::panic::resume_unwind(Box::new("a first attempt panics")),
            "hang" if attempt == 1 => std::future::pending().await,
            "slow" => tokio::time::sleep(SLOW).await,
            "waits" => self.0.gate.acquire().await.unwrap().forget(),
            "heeds" => {
                tokio::select! {
                    () = context.cancelled() => *self.0.cancelled.lock().unwrap() += 1,
                    () = tokio::time::sleep(SLOW) => {}
                }
            }
            _ => {}
        }
        Ack::accept()
    }
}

#[consumer(
    queue = "plain",
    declare = quorum,
    retry = fixed(4, "1s"),
    timeout = "5m",
    idempotent(claim = "30s", in_progress_delay = "5s", retention = "1h")
)]
pub(crate) async fn plain(Text(what): Text, State(board): State<Board>, context: Context) -> Ack {
    board.act(&what, &context).await
}

#[consumer(
    queue = "hasty",
    declare = quorum,
    retry = fixed(4, "1s"),
    timeout = "5m",
    idempotent(claim = "6s", in_progress_delay = "2s")
)]
pub(crate) async fn hasty(Text(what): Text, State(board): State<Board>, context: Context) -> Ack {
    board.act(&what, &context).await
}

#[consumer(queue = "endless", declare = quorum, retry = fixed(4, "1s"), idempotent(claim = Duration::MAX))]
pub(crate) async fn endless(Text(what): Text, State(board): State<Board>, context: Context) -> Ack {
    board.act(&what, &context).await
}

#[consumer(queue = "other", declare = quorum, retry = fixed(4, "1s"), idempotent)]
pub(crate) async fn other(Text(what): Text, State(board): State<Board>, context: Context) -> Ack {
    board.act(&what, &context).await
}

#[consumer(queue = "shared.one", declare = quorum, retry = fixed(4, "1s"), idempotent(scope = shared))]
pub(crate) async fn shared_one(Text(what): Text, State(board): State<Board>, context: Context) -> Ack {
    board.act(&what, &context).await
}

#[consumer(queue = "shared.two", declare = quorum, retry = fixed(4, "1s"), idempotent(scope = shared))]
pub(crate) async fn shared_two(Text(what): Text, State(board): State<Board>, context: Context) -> Ack {
    board.act(&what, &context).await
}

#[consumer(queue = "strict", declare = quorum, retry = fixed(4, "1s"), idempotent(no_id = park))]
pub(crate) async fn strict(Text(what): Text, State(board): State<Board>, context: Context) -> Ack {
    board.act(&what, &context).await
}

fn first_word(text: &Text) -> String {
    text.0.split(' ').next().unwrap_or_default().to_owned()
}

#[consumer(queue = "keyed", declare = quorum, retry = fixed(4, "1s"), idempotent(key = first_word))]
pub(crate) async fn keyed(Text(what): Text, State(board): State<Board>, context: Context) -> Ack {
    board.act(&what, &context).await
}

#[consumer(queue = "named", declare = quorum, retry = fixed(4, "1s"), idempotent(store = "orders"))]
pub(crate) async fn named(Text(what): Text, State(board): State<Board>, context: Context) -> Ack {
    board.act(&what, &context).await
}

/// A message with this id.
pub(crate) fn id(id: &str) -> Properties {
    Properties { message_id: Some(id.to_owned()), ..Properties::default() }
}

/// A message whose id stands in the header of the family only, which has room for a long one.
pub(crate) fn long_id(id: &str) -> Properties {
    let headers = Table::from([("x-acemq-id".to_owned(), Value::from(id))]);
    Properties { headers, ..Properties::default() }
}
