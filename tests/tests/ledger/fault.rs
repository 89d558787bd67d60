//! What strikes in a run, and when.

use std::time::Duration;

use rand::{RngExt, rngs::StdRng, seq::IndexedRandom};

use super::script::{End, WORK};

/// One thing that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Every connection ends in order.
    Cut,
    /// Every connection is reset.
    Reset,
    /// The connection that is written to next is reset, half of the write through.
    ResetMidWrite,
    /// A connection ends after so many more bytes towards the server.
    CutToServer(u64),
    /// The same towards the client.
    CutToClient(u64),
    /// Nothing gets through in either direction for so many milliseconds.
    Stall(u64),
    /// New connections are refused for so many milliseconds, and open ones cut.
    Refuse(u64),
    /// The broker blocks publishers for so many milliseconds; over its disk or else its memory.
    Alarm { millis: u64, disk: bool },
    /// The broker is killed and started again.
    Kill,
    /// The node that leads a queue is killed, and started again after so many milliseconds.
    KillLeader { queue: &'static str, millis: u64 },
    /// The broker is stopped in order and started again.
    Stop,
    /// The broker closes every connection.
    CloseConnections,
    /// The broker closes the channels that consume from a queue.
    CloseChannels(&'static str),
    /// The broker cancels the consumers of a queue.
    CancelConsumers(&'static str),
    /// A source queue is deleted.
    DeleteSource(&'static str),
    /// A queue in which retries wait is deleted.
    DeleteRung(&'static str),
    /// The queue for dead letters or parked ones is deleted.
    DeleteAside(&'static str, Aside),
    /// So many publishes are refused by the broker.
    Nack(usize),
    /// So many confirms never come.
    LoseConfirms(usize),
    /// All confirms are late by so many milliseconds.
    StallConfirms(u64),
    /// The store of the claims is out of reach for so many milliseconds.
    StoreAway(u64),
    /// A message is held longer than the broker allows.
    Hold,
    /// The application closes in order and starts again.
    Restart,
    /// The application is dropped where it stands and starts again.
    Drop,
}

/// Which of the two queues for what is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aside {
    DeadLetters,
    Parked,
}

impl Aside {
    pub(crate) fn queue(self, source: &str) -> String {
        match self {
            Self::DeadLetters => format!("{source}.dlq"),
            Self::Parked => format!("{source}.parked"),
        }
    }

    pub(crate) fn end(self) -> End {
        match self {
            Self::DeadLetters => End::DeadLetter,
            Self::Parked => End::Parked,
        }
    }
}

fn source(random: &mut StdRng) -> &'static str {
    WORK.choose(random).unwrap().0
}

fn rung(random: &mut StdRng) -> &'static str {
    let rungs: Vec<&str> = WORK.iter().flat_map(|(.., rungs)| rungs.iter().copied()).collect();
    rungs.choose(random).unwrap()
}

fn aside(random: &mut StdRng) -> Fault {
    let end = if random.random_bool(0.5) { Aside::DeadLetters } else { Aside::Parked };
    Fault::DeleteAside(source(random), end)
}

/// A fault of the embedded broker.
pub(crate) fn embedded(random: &mut StdRng) -> Fault {
    match random.random_range(0..17) {
        0 | 1 => Fault::Cut,
        2 => Fault::Refuse(random.random_range(10..5_000)),
        3 => Fault::Alarm { millis: random.random_range(10..20_000), disk: false },
        4 => Fault::CloseChannels(source(random)),
        5 => Fault::CancelConsumers(source(random)),
        6 => Fault::DeleteSource(source(random)),
        7 => Fault::DeleteRung(rung(random)),
        8 => aside(random),
        9 | 10 => Fault::Nack(random.random_range(1..8)),
        11 | 12 => Fault::LoseConfirms(random.random_range(1..8)),
        13 => Fault::StallConfirms(random.random_range(10..40_000)),
        14 => Fault::Restart,
        15 => Fault::StoreAway(random.random_range(10..10_000)),
        _ => Fault::Drop,
    }
}

/// A fault of a RabbitMQ node behind a proxy.
pub(crate) fn rabbitmq(random: &mut StdRng) -> Fault {
    match random.random_range(0..25) {
        0 => Fault::Cut,
        1 | 2 => Fault::Reset,
        3 | 4 => Fault::ResetMidWrite,
        5 | 6 => Fault::CutToServer(random.random_range(1..20_000)),
        7 | 8 => Fault::CutToClient(random.random_range(1..20_000)),
        9 => Fault::Stall(random.random_range(100..1_000)),
        10 => Fault::Stall(3_500),
        11 => Fault::Refuse(random.random_range(100..1_000)),
        12 | 13 => Fault::Alarm { millis: random.random_range(300..1_500), disk: random.random_bool(0.5) },
        14 | 15 => Fault::Kill,
        16 => Fault::Stop,
        17 => Fault::CloseConnections,
        18 => Fault::Hold,
        19 => Fault::DeleteSource(source(random)),
        20 => Fault::DeleteRung(rung(random)),
        21 => aside(random),
        22 => Fault::Restart,
        _ => Fault::Drop,
    }
}

/// A fault of one node behind a proxy, or of the node among several that leads a queue.
pub(crate) fn cluster(random: &mut StdRng) -> Fault {
    match random.random_range(0..10) {
        0..=3 => Fault::KillLeader { queue: source(random), millis: random.random_range(0..3_000) },
        4..=6 => Fault::KillLeader { queue: rung(random), millis: random.random_range(0..3_000) },
        7 => Fault::Reset,
        8 => Fault::CutToClient(random.random_range(1..20_000)),
        _ => Fault::Drop,
    }
}

/// So many faults at random times within the span, in their order; a seventh of all runs has none.
pub(crate) fn plan(
    random: &mut StdRng,
    most: usize,
    span: Duration,
    mut any: impl FnMut(&mut StdRng) -> Fault,
) -> Vec<(Duration, Fault)> {
    if random.random_ratio(1, 7) {
        return Vec::new();
    }
    let count = random.random_range(1..=most);
    let mut plan: Vec<_> = (0..count).map(|_| (random.random_range(Duration::ZERO..span), any(random))).collect();
    plan.sort_by_key(|(at, _)| *at);
    plan
}
