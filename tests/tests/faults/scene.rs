//! What the cases have in common: consumers that do as a test says, and a look at the embedded broker.

use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use acemq::{
    Ack, App, Running,
    envelope::{Properties, Table, Value, headers::Number},
    handler::Context,
    transport::{Incoming, Outgoing, Transport, memory::Memory},
};
use futures_util::{FutureExt, future::BoxFuture};
use tokio::{sync::watch, time::Instant};

/// The end of every wait in paused time.
pub(crate) const LATEST: Duration = Duration::from_hours(6);

type Act = dyn Fn(Call, Context) -> BoxFuture<'static, Result<Ack, String>> + Send + Sync;

/// What the handlers of a test do, and what they saw.
#[derive(Clone)]
pub(crate) struct Script {
    act: Arc<Act>,
    calls: Arc<Mutex<Vec<Call>>>,
    count: watch::Sender<usize>,
}

/// One call of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub body: String,
    pub attempt: u32,
    pub at: Instant,
}

impl Script {
    pub(crate) fn new<F: Future<Output = Result<Ack, String>> + Send + 'static>(
        act: impl Fn(Call, Context) -> F + Send + Sync + 'static,
    ) -> Self {
        let act: Arc<Act> = Arc::new(move |call, context| act(call, context).boxed());
        Self { act, calls: Arc::default(), count: watch::Sender::new(0) }
    }

    pub(crate) fn accepts() -> Self {
        Self::new(async |_, _| Ok(Ack::accept()))
    }

    pub(crate) fn fails() -> Self {
        Self::new(async |_, _| Err("it fails".to_owned()))
    }

    pub(crate) async fn run(&self, body: &[u8], context: Context) -> Result<Ack, String> {
        let call =
            Call { body: String::from_utf8_lossy(body).into_owned(), attempt: context.attempt(), at: Instant::now() };
        let count = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(call.clone());
            calls.len()
        };
        self.count.send_replace(count);
        (self.act)(call, context).await
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn attempts(&self) -> Vec<u32> {
        self.calls().iter().map(|call| call.attempt).collect()
    }

    /// Waits for so many calls.
    pub(crate) async fn called(&self, count: usize, deadline: Duration) {
        let mut counts = self.count.subscribe();
        let waited = tokio::time::timeout(deadline, counts.wait_for(|calls| *calls >= count)).await;
        assert!(waited.is_ok(), "{count} calls were awaited, and these came: {:?}", self.calls());
    }
}

/// The embedded broker with an application on it.
pub(crate) struct Scene {
    pub(crate) broker: Memory,
    pub(crate) running: Running,
}

impl Scene {
    pub(crate) async fn start(app: App) -> Self {
        let broker = Memory::private();
        Self { running: app.transport(broker.clone()).start().await.unwrap(), broker }
    }

    pub(crate) async fn over(broker: &Memory, transport: impl Transport, app: App) -> Self {
        Self { running: app.transport(transport).start().await.unwrap(), broker: broker.clone() }
    }

    /// Puts a message of a stranger into a queue.
    pub(crate) fn put(&self, queue: &str, body: &str) {
        put(&self.broker, queue, body, Properties::default());
    }

    /// Waits until so many messages lie in a queue.
    pub(crate) async fn lying(&self, queue: &str, count: usize) -> Vec<Incoming> {
        let there = self.broker.wait_until(|view| view.ready(queue) >= count);
        let waited = tokio::time::timeout(LATEST, there).await;
        let messages = self.broker.messages(queue);
        assert!(waited.is_ok(), "{count} messages were awaited in {queue}, and {} came", messages.len());
        messages
    }

    /// Waits until a queue has nothing any more, neither ready nor unacked.
    pub(crate) async fn empty(&self, queue: &str) {
        let empty = self.broker.wait_until(|view| view.depth(queue) == 0);
        assert!(tokio::time::timeout(LATEST, empty).await.is_ok(), "{queue} still has {}", self.broker.depth(queue));
    }
}

pub(crate) fn put(broker: &Memory, queue: &str, body: &str, properties: Properties) {
    let routed = broker.publish(Outgoing {
        exchange: String::new(),
        routing_key: queue.to_owned(),
        mandatory: true,
        properties,
        body: body.to_owned().into(),
    });
    assert!(routed.is_ok(), "{routed:?}");
}

pub(crate) fn app(script: &Script) -> App {
    App::new().state(script.clone())
}

pub(crate) fn headers(entries: &[(&str, Value)]) -> Properties {
    let headers = entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Table>();
    Properties { headers, ..Properties::default() }
}

pub(crate) fn text<'a>(message: &'a Incoming, header: &str) -> Option<&'a str> {
    message.properties.headers.get(header).and_then(Value::as_text)
}

pub(crate) fn attempt(message: &Incoming) -> Option<i64> {
    match message.properties.headers.get("x-acemq-attempt").map(acemq::envelope::headers::number) {
        Some(Number::Whole(number)) => Some(number),
        _ => None,
    }
}
