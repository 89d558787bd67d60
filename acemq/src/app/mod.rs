//! The application: collects the consumers, checks them, starts them, and closes them together.

#[cfg(feature = "actuator")]
mod actuator;
mod config;
mod exit;
mod handle;
mod hook;
mod running;
mod signals;
mod start;
mod validate;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::{
    Drained, Error,
    handler::{self, Scope},
    health::{Contributor, HealthContributor},
    idempotency::ClaimStore,
    registry::{self, Consumer, Consumers, Registration, RungKind},
    transport::Transport,
};

pub use handle::{Handle, UnknownConsumer};
pub use running::Running;

/// How long running handlers may take at a shutdown, unless the application says otherwise: less than the 30 seconds that
/// Kubernetes gives a process.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(20);

/// How often the broker may take a message back before it is set aside, unless the application says otherwise.
pub const CRASH_LIMIT: u32 = 10;

/// How long handlers get to end after they have been told to stop.
pub const GRACE: Duration = Duration::from_secs(5);

/// An application that is being put together.
///
/// # Examples
/// ```
/// use acemq::App;
///
/// #[derive(Clone)]
/// struct Database;
///
/// # async fn example() -> Result<(), acemq::Error> {
/// let running = App::new().url("memory://shop").state(Database).start().await?;
/// running.close().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "an application does nothing before `run` or `start`"]
pub struct App {
    url: Option<String>,
    transport: Option<Arc<dyn Transport>>,
    scope: Scope,
    consumers: Option<Vec<Registration>>,
    expected: Option<usize>,
    stores: BTreeMap<&'static str, Arc<dyn ClaimStore>>,
    default_store: Option<Arc<dyn ClaimStore>>,
    rungs: RungKind,
    refusal: OnRefusal,
    crash_limit: u32,
    drain_timeout: Duration,
    grace: Duration,
    origin: Option<String>,
    contributors: Vec<Contributor>,
    hooks: hook::Hooks,
    #[cfg(feature = "actuator")]
    actuator: actuator::Settings,
}

/// What a refused declaration means for the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnRefusal {
    /// The application does not start.
    #[default]
    Fail,
    /// The other consumers start; the refused one is degraded, and tries again until the broker accepts it.
    Degrade,
}

impl Default for App {
    fn default() -> Self {
        Self::new()
    }
}

impl App {
    /// An application with every annotated consumer of the program, on `amqp://localhost:5672`.
    pub fn new() -> Self {
        Self {
            url: None,
            transport: None,
            scope: Scope::default(),
            consumers: None,
            expected: None,
            stores: BTreeMap::new(),
            default_store: None,
            rungs: RungKind::default(),
            refusal: OnRefusal::default(),
            crash_limit: CRASH_LIMIT,
            drain_timeout: DRAIN_TIMEOUT,
            grace: GRACE,
            origin: None,
            contributors: Vec::new(),
            hooks: hook::Hooks::default(),
            #[cfg(feature = "actuator")]
            actuator: actuator::Settings::default(),
        }
    }

    /// An application with the settings of the environment.
    ///
    /// - `ACEMQ_URL`: the broker.
    /// - `ACEMQ_DRAIN_TIMEOUT`: how long running handlers may take at a shutdown, such as `30s`.
    /// - `ACEMQ_ACTUATOR`: the address of health and metrics, or `off`; with the feature `actuator` it is `127.0.0.1:9464`
    ///   unless set.
    ///
    /// # Errors
    /// When a variable holds something else than it should.
    pub fn from_env() -> Result<Self, Error> {
        let environment = config::Environment::read(|name| std::env::var(name).ok())?;
        let mut app = Self::new();
        app.url = environment.url;
        if let Some(timeout) = environment.drain_timeout {
            app.drain_timeout = timeout;
        }
        #[cfg(feature = "actuator")]
        app.actuator.set(environment.actuator);
        Ok(app)
    }

    /// Connects to this broker: `amqp://user:password@host:port/vhost`, or `memory://name` for the embedded one.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Connects through this transport, in place of the one that a URL names.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.transport = Some(Arc::new(transport));
        self
    }

    /// Provides a value that consumers take as `State<S>`.
    pub fn state<S: Clone + Send + Sync + 'static>(mut self, value: S) -> Self {
        self.scope.insert(value);
        self
    }

    /// Names a consumer: with the first one named, only named ones run.
    pub fn consumer<C: Consumer>(mut self) -> Self {
        self.consumers.get_or_insert_default().push(C::REGISTRATION);
        self
    }

    /// Names the consumers of a service, which is an `impl` with [`consumers`](macro@crate::consumers), as
    /// [`consumer`](Self::consumer) names one.
    pub fn consumers<S: Consumers>(mut self) -> Self {
        self.consumers.get_or_insert_default().extend(S::REGISTRATIONS);
        self
    }

    /// Says how many consumers there are. With more or fewer, the application does not start.
    ///
    /// Consumers are found by themselves, and so one may be missing without a word: the linker drops a crate that nothing
    /// names.
    pub fn expect_consumers(mut self, number: usize) -> Self {
        self.expected = Some(number);
        self
    }

    /// Keeps claims in this store, for every consumer that names none.
    pub fn idempotency(mut self, store: impl ClaimStore) -> Self {
        self.default_store = Some(Arc::new(store));
        self
    }

    /// Keeps the claims of the consumers that name this store in it.
    pub fn idempotency_named(mut self, name: &'static str, store: impl ClaimStore) -> Self {
        self.stores.insert(name, Arc::new(store));
        self
    }

    /// Sets the kind of the queues in which retries wait, for every consumer that names none.
    pub fn rungs(mut self, kind: RungKind) -> Self {
        self.rungs = kind;
        self
    }

    /// Sets how often the broker may take a message back before it is set aside; 10 unless set, zero is without end.
    ///
    /// A process that dies over a message leaves its attempt as it is, and would die over it for ever. A quorum queue counts
    /// what it takes back, and RabbitMQ 4 gives a message up after 20 times, without a reason of acemq's; so the limit is
    /// lower. A classic queue does not count: there a message that came back is first published anew with the count on it,
    /// at the end of the queue, and only then handled.
    pub fn crash_limit(mut self, limit: u32) -> Self {
        self.crash_limit = limit;
        self
    }

    /// Says what a refused declaration means.
    pub fn on_refusal(mut self, refusal: OnRefusal) -> Self {
        self.refusal = refusal;
        self
    }

    /// Sets how long running handlers may take at a shutdown; 20 seconds unless set.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Sets how long handlers get to end after they have been told to stop; 5 seconds unless set.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Names the publishing process in the messages that it publishes; `acemq@{hostname}` unless set.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Adds a part to the health of the application.
    pub fn health(mut self, contributor: impl HealthContributor) -> Self {
        self.contributors.push(Contributor::new(contributor));
        self
    }

    /// Does something once all consumers receive messages, such as telling an orchestrator; [`App::start`] returns after it.
    pub fn on_started<F: Future<Output = ()> + Send + 'static>(
        mut self,
        hook: impl Fn(Handle) -> F + Send + Sync + 'static,
    ) -> Self {
        self.hooks.started.push(Box::new(move |handle| Box::pin(hook(handle))));
        self
    }

    /// Does something with the account once the application has closed; five seconds are given to it.
    pub fn on_drained<F: Future<Output = ()> + Send + 'static>(
        mut self,
        hook: impl Fn(Drained) -> F + Send + Sync + 'static,
    ) -> Self {
        self.hooks.drained.push(Box::new(move |drained| Box::pin(hook(drained))));
        self
    }

    /// Serves health and metrics over HTTP at this address, such as `127.0.0.1:9464`; port 0 is any free one.
    ///
    /// An address that other machines reach is taken too, and the log says so: there is no password.
    #[cfg(feature = "actuator")]
    pub fn actuator(mut self, address: impl Into<String>) -> Self {
        self.actuator.address = Some(address.into());
        self
    }

    /// Answers health and metrics to requests for this host name too. Addresses and `localhost` are always answered, other
    /// names are not: a web page could have its name point here.
    #[cfg(feature = "actuator")]
    pub fn actuator_host(mut self, name: impl Into<String>) -> Self {
        self.actuator.hosts.push(name.into());
        self
    }

    /// Runs until SIGTERM or SIGINT, or until a [`Handle`] begins the close, then closes. A second signal tells running
    /// handlers to stop, a third one ends their grace.
    ///
    /// When handlers hold threads of the runtime although they were told to stop, the runtime would wait for them without
    /// end; so a second after this has returned, the process ends with the exit code of the account.
    ///
    /// # Errors
    /// When the application cannot be started; see [`App::start`].
    pub async fn run(self) -> Result<Drained, Error> {
        // Before anything else, so that no signal is missed.
        runtime()?;
        let mut signals = signals::Signals::listen()?;
        let running = tokio::select! {
            running = self.start() => running?,
            name = signals.next() => {
                tracing::info!(signal = name, "stopped before the start");
                return Ok(Drained::nothing());
            }
        };
        let handle = running.handle();
        tokio::select! {
            name = signals.next() => tracing::info!(signal = name, "closing"),
            () = handle.closing() => tracing::info!("closing"),
        }
        let mut closing = std::pin::pin!(running.close());
        let drained = loop {
            tokio::select! {
                biased;
                drained = &mut closing => break drained,
                name = signals.next() => {
                    tracing::warn!(signal = name, "another signal: not waiting for running handlers any more");
                    handle.hurry();
                }
            }
        };
        if drained.finished {
            tracing::info!("closed: {drained}");
        } else {
            tracing::error!("closed: {drained}");
        }
        if drained.left.total() > 0 || handler::blocked() {
            exit::soon(&drained);
        }
        Ok(drained)
    }

    /// Starts every consumer, and returns once all of them receive messages.
    ///
    /// # Errors
    /// When something is wrong with the consumers or their state, when the broker cannot be reached, or when it refuses what
    /// the consumers need.
    pub async fn start(self) -> Result<Running, Error> {
        runtime()?;
        start::start(self).await
    }

    /// Whether a consumer expects this queue to be there.
    #[cfg(feature = "testing")]
    pub(crate) fn expects(&self, queue: &str) -> bool {
        self.registrations().iter().any(|consumer| consumer.spec.queue == queue && consumer.spec.declare.is_none())
    }

    fn registrations(&self) -> Vec<Registration> {
        self.consumers.clone().unwrap_or_else(registry::collected)
    }
}

/// Runs every annotated consumer of the program with the settings of the environment, until SIGTERM or SIGINT.
///
/// # Errors
/// When the application cannot be started; see [`App::start`].
pub async fn run() -> Result<Drained, Error> {
    App::from_env()?.run().await
}

fn runtime() -> Result<(), Error> {
    tokio::runtime::Handle::try_current().map(drop).map_err(|_| Error::NoRuntime)
}
