//! Which consumers there are: what the attribute collects, or an explicit list.

pub(crate) mod check;

use std::time::Duration;

use futures_util::future::BoxFuture;

pub use check::SpecError;

use crate::{
    handler::{Ack, Context, Requirements},
    policy::RetryPolicy,
};

/// A running call of a consumer function.
pub type Call = BoxFuture<'static, Ack>;

/// A consumer function with its settings; the attribute writes one for each function.
#[derive(Debug, Clone, Copy)]
pub struct Registration {
    /// For logs, health and metrics: module path and function, unless the attribute names another.
    pub name: &'static str,
    /// Where the function stands.
    pub location: Location,
    /// What it consumes and how.
    pub spec: ConsumerSpec,
    /// What it needs from the application.
    pub requires: fn(&mut Requirements),
    /// Calls it.
    pub invoke: fn(Context) -> Call,
}

/// A place in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
}

/// What a consumer consumes and how.
#[derive(Debug, Clone, Copy)]
pub struct ConsumerSpec {
    /// The queue.
    pub queue: &'static str,
    /// What follows a failure.
    pub retry: RetryPolicy,
    /// How many deliveries the broker may have out at once.
    pub prefetch: u16,
    /// How many handlers may run at once; at most the prefetch.
    pub concurrency: u16,
    /// After which time a handler is cancelled, and has failed.
    pub timeout: Option<Duration>,
    /// Whether acemq declares the queue, and as what.
    pub declare: Option<QueueKind>,
    /// Bindings that acemq adds.
    pub bind: &'static [Bind],
    /// The kind of the queues in which retries wait; the application's choice unless set.
    pub rungs: Option<RungKind>,
    /// How duplicates are kept out.
    pub idempotent: Option<Idempotent>,
}

impl ConsumerSpec {
    /// How many deliveries the broker may have out at once, unless a consumer says otherwise.
    pub const PREFETCH: u16 = 20;

    /// The settings of a consumer that names nothing but its queue.
    #[must_use]
    pub const fn new(queue: &'static str) -> Self {
        Self {
            queue,
            retry: RetryPolicy::DEFAULT,
            prefetch: Self::PREFETCH,
            concurrency: Self::PREFETCH,
            timeout: None,
            declare: None,
            bind: &[],
            rungs: None,
            idempotent: None,
        }
    }
}

/// How a queue that acemq declares keeps its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueKind {
    /// Replicated.
    Quorum,
    /// On one node.
    Classic,
}

/// The kind of the queues in which retries wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RungKind {
    /// Nothing that waits is lost, whatever happens to the broker.
    #[default]
    Quorum,
    /// As the other libraries of the family declare them. Waiting retries are lost when the broker is killed and, before a
    /// quorum queue, on an ordinary restart.
    Classic,
}

/// A binding from an exchange to the queue of a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bind {
    /// The exchange, which has to exist.
    pub exchange: &'static str,
    /// The routing key.
    pub routing_key: &'static str,
}

/// How a consumer keeps duplicates out.
#[derive(Debug, Clone, Copy)]
pub struct Idempotent {
    /// How long a handled message is remembered, counted from its handling.
    pub retention: Duration,
    /// How long a claim holds without being renewed.
    pub claim: Duration,
    /// The wait before a message that somebody else is handling is looked at again.
    pub in_progress_delay: Duration,
    /// Whether other queues share the key.
    pub scope: Scoped,
    /// What becomes of a message without an id.
    pub no_id: NoId,
    /// The name of the store; the application's default unless set.
    pub store: Option<&'static str>,
    /// Takes the key from the message, in place of its id.
    pub key: Option<KeyFn>,
}

/// Takes the key of a claim from a message; fails when the message cannot be read.
pub type KeyFn = fn(&Context) -> Result<String, crate::envelope::DecodeError>;

impl Idempotent {
    /// What a bare `idempotent` means.
    pub const DEFAULT: Self = Self {
        retention: Duration::from_hours(24),
        claim: Duration::from_mins(5),
        in_progress_delay: Duration::from_secs(5),
        scope: Scoped::Queue,
        no_id: NoId::Run,
        store: None,
        key: None,
    };
}

/// Whether the key of a claim is one queue's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scoped {
    /// It is: a message that went to two queues is handled once for each.
    Queue,
    /// It is the bare id, for a table that another library of the family uses too.
    Shared,
}

/// What becomes of a message without an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoId {
    /// It is handled without protection from duplicates, which is counted.
    Run,
    /// It is parked.
    Park,
}

/// A function with the attribute, as a type: what an explicit list names.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a consumer",
    label = "not a consumer",
    note = "put `#[acemq::consumer(queue = \"…\")]` on the function"
)]
pub trait Consumer {
    /// The function with its settings.
    const REGISTRATION: Registration;
}

/// A service whose methods are consumers, as a type: what an explicit list names.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a service of consumers",
    label = "a service has an `impl` with `#[acemq::consumers]`",
    note = "for a single function, name it as a consumer"
)]
pub trait Consumers {
    /// The methods with their settings, in the order in which they stand.
    const REGISTRATIONS: &'static [Registration];
}

inventory::collect!(Registration);

/// Every consumer that is linked into the program, in a stable order: by queue, then name.
#[must_use]
pub fn collected() -> Vec<Registration> {
    let mut found: Vec<Registration> = inventory::iter::<Registration>.into_iter().copied().collect();
    found.sort_by_key(|registration| (registration.spec.queue, registration.name, registration.location.line));
    found
}
