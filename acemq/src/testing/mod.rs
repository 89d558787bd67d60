//! Tests of a service without a broker: a private embedded one, and schedules of hours in paused time.
//!
//! ```
//! use acemq::{Context, State, consumer, testing::TestApp};
//!
//! #[derive(Clone)]
//! struct Bank;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Order { id: u32 }
//!
//! #[consumer(queue = "orders.charge", declare = quorum, retry = fixed(3, "6h"))]
//! async fn charge(order: Order, State(_bank): State<Bank>, context: Context) -> Result<(), String> {
//!     Err(format!("order {}: declined on attempt {}", order.id, context.attempt()))
//! }
//!
//! // In a test: #[tokio::test(start_paused = true)]
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
//! let app = TestApp::of::<charge>().state(Bank).start().await;
//! app.send("orders.charge", &Order { id: 7 }).await;
//! app.settle().await;
//! let letters = app.dead_letters("orders.charge");
//! let reason = "attempts exhausted after 3 deliveries: order 7: declined on attempt 3";
//! assert_eq!(letters[0].reason(), Some(reason));
//! # });
//! ```
//!
//! A consumer function also stays callable as the function that it is.

// A test that cannot go on fails, with a sentence.
#![allow(clippy::panic)]

use std::time::Duration;

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    App, Drained, Running,
    envelope::{Codec, DefaultCodec, Envelope, Properties},
    idempotency::ClaimStore,
    publisher::Receipt,
    registry::Consumer,
    topology::{self, Declaration, dead_letter_queue, parking_queue},
    transport::{Incoming, memory::Memory},
};

pub use crate::idempotency::conformance;

/// How long a settlement may take, in the time of the test: a week of retries.
const LONGEST_SETTLEMENT: Duration = Duration::from_hours(7 * 24);

/// An application under test, on a broker of its own.
#[derive(Debug)]
pub struct TestApp {
    running: Running,
    broker: Memory,
    /// The queues in which a message may still become something: sources and rungs.
    working: Vec<String>,
}

/// A test application that is being put together.
#[derive(Debug)]
#[must_use = "a test application does nothing before `start`"]
pub struct TestAppBuilder {
    app: App,
    working: Vec<String>,
}

impl TestApp {
    /// An application of one consumer.
    pub fn of<C: Consumer>() -> TestAppBuilder {
        TestAppBuilder { app: App::new(), working: Vec::new() }.and::<C>()
    }

    /// Puts a message into a queue as a publisher of the family would.
    ///
    /// # Panics
    /// When the queue does not exist, or the message cannot be written.
    pub async fn send<T: Serialize + ?Sized>(&self, queue: &str, message: &T) -> Receipt {
        match self.running.publisher().to_queue(queue).send(message).await {
            Ok(receipt) => receipt,
            Err(error) => panic!("nothing could be sent to `{queue}`: {error}"),
        }
    }

    /// Puts a body into a queue with these properties, as a stranger would.
    ///
    /// # Panics
    /// When the queue does not exist.
    pub fn put(&self, queue: &str, body: impl Into<Bytes>, properties: Properties) {
        let message = crate::transport::Outgoing {
            exchange: String::new(),
            routing_key: queue.to_owned(),
            mandatory: true,
            properties,
            body: body.into(),
        };
        match self.broker.publish(message) {
            Ok(crate::transport::Routing::Routed) => {}
            other => panic!("nothing could be put into `{queue}`: {other:?}"),
        }
    }

    /// Waits until every message has come to its end: handled, dead-lettered or parked. In paused time, waits of hours pass
    /// at once.
    ///
    /// # Panics
    /// When a message is still being tried after a week, as without a retry policy.
    pub async fn settle(&self) {
        let quiet = self.broker.wait_until(|broker| self.working.iter().all(|queue| broker.depth(queue) == 0));
        let settled = tokio::time::timeout(LONGEST_SETTLEMENT, quiet).await;
        assert!(
            settled.is_ok(),
            "a message is still being tried after {LONGEST_SETTLEMENT:?}: has its consumer a retry policy?"
        );
        self.running.settled().await;
    }

    /// What is in the dead-letter queue of `queue`, the oldest first.
    #[must_use]
    pub fn dead_letters(&self, queue: &str) -> Vec<Letter> {
        self.letters(&dead_letter_queue(queue))
    }

    /// What is in the parking queue of `queue`, the oldest first.
    #[must_use]
    pub fn parked(&self, queue: &str) -> Vec<Letter> {
        self.letters(&parking_queue(queue))
    }

    /// What is in a queue, the oldest first.
    #[must_use]
    pub fn letters(&self, queue: &str) -> Vec<Letter> {
        self.broker.messages(queue).into_iter().map(Letter).collect()
    }

    /// The running application.
    #[must_use]
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// The broker, to declare what the application does not, and to make it fail.
    #[must_use]
    pub fn broker(&self) -> &Memory {
        &self.broker
    }

    /// Closes the application.
    pub async fn close(self) -> Drained {
        self.running.close().await
    }
}

impl TestAppBuilder {
    /// Adds a consumer.
    pub fn and<C: Consumer>(mut self) -> Self {
        let spec = &C::REGISTRATION.spec;
        let plan = topology::plan(spec, spec.rungs.unwrap_or_default());
        let aside = [dead_letter_queue(spec.queue), parking_queue(spec.queue)];
        self.working.extend(plan.into_iter().filter_map(|declaration| match declaration {
            Declaration::Queue { name, .. } | Declaration::QueueExists { name } if !aside.contains(&name) => Some(name),
            _ => None,
        }));
        self.app = self.app.consumer::<C>();
        self
    }

    /// Provides a value that consumers take as `State<S>`.
    pub fn state<S: Clone + Send + Sync + 'static>(mut self, value: S) -> Self {
        self.app = self.app.state(value);
        self
    }

    /// Keeps claims in this store.
    pub fn idempotency(mut self, store: impl ClaimStore) -> Self {
        self.app = self.app.idempotency(store);
        self
    }

    /// Changes the application in any other way.
    pub fn with(mut self, change: impl FnOnce(App) -> App) -> Self {
        self.app = change(self.app);
        self
    }

    /// Starts the application on a broker of its own. Queues that it expects and does not declare are there.
    ///
    /// # Panics
    /// When the application cannot start.
    pub async fn start(self) -> TestApp {
        let broker = Memory::private();
        for name in &self.working {
            let there = Declaration::QueueExists { name: name.clone() };
            let source = Declaration::Queue { name: name.clone(), arguments: crate::envelope::Table::new() };
            let expected = self.app.expects(name) && broker.declare(&there).is_err();
            if expected && let Err(error) = broker.declare(&source) {
                panic!("queue `{name}` cannot be declared: {error}");
            }
        }
        match self.app.transport(broker.clone()).start().await {
            Ok(running) => TestApp { running, broker, working: self.working },
            Err(error) => panic!("{error}"),
        }
    }
}

/// A message in a queue.
#[derive(Debug, Clone)]
pub struct Letter(Incoming);

impl Letter {
    /// Why the message was set aside.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.0.properties.headers.get(crate::envelope::headers::ERROR).and_then(crate::envelope::Value::as_text)
    }

    /// The body as it is.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.0.body
    }

    /// The properties as they are.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.0.properties
    }

    /// What the message is.
    ///
    /// # Panics
    /// When the headers make no sense.
    #[must_use]
    pub fn envelope(&self) -> Envelope {
        match Envelope::read(&self.0.properties, &self.0.routing_key) {
            Ok(envelope) => envelope,
            Err(error) => panic!("{error}"),
        }
    }

    /// The body, read by the default codec.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn read<T: DeserializeOwned>(&self) -> T {
        match DefaultCodec::decode(&self.0.body) {
            Ok(value) => value,
            Err(error) => panic!("{error}"),
        }
    }
}
