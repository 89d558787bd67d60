//! Consumers that do what a test wants, and a broker for them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use acemq::{
    App, Context, Drained, Running, State, Text, consumer,
    envelope::Properties,
    transport::{Outgoing, Routing, memory::Memory},
};
use tokio::sync::{Semaphore, watch};

/// What handlers and their test tell each other.
#[derive(Clone)]
pub struct Bench(Arc<Inner>);

struct Inner {
    begun: watch::Sender<Vec<(String, u32)>>,
    ended: Mutex<Vec<String>>,
    go: Semaphore,
}

impl Bench {
    pub fn new() -> Self {
        let (begun, ended, go) = (watch::Sender::new(Vec::new()), Mutex::default(), Semaphore::new(0));
        Self(Arc::new(Inner { begun, ended, go }))
    }

    pub fn begin(&self, what: &str, context: &Context) {
        self.0.begun.send_modify(|begun| begun.push((what.to_owned(), context.attempt())));
    }

    pub fn end(&self, what: &str) {
        self.0.ended.lock().unwrap().push(what.to_owned());
    }

    /// Lets so many handlers of `works` end.
    pub fn go(&self, count: usize) {
        self.0.go.add_permits(count);
    }

    pub async fn begun(&self, count: usize) -> Vec<(String, u32)> {
        let mut begun = self.0.begun.subscribe();
        begun.wait_for(|begun| begun.len() >= count).await.unwrap().clone()
    }

    pub fn seen(&self) -> Vec<(String, u32)> {
        self.0.begun.borrow().clone()
    }

    pub fn ended(&self) -> Vec<String> {
        self.0.ended.lock().unwrap().clone()
    }
}

/// Works until it is let go.
#[consumer(queue = "works", declare = quorum, prefetch = 2000, name = "works")]
pub async fn works(Text(what): Text, State(bench): State<Bench>, context: Context) {
    bench.begin(&what, &context);
    bench.0.go.acquire().await.unwrap().forget();
    bench.end(&what);
}

/// Sleeps for as many milliseconds as the message says.
#[consumer(queue = "sleeps", declare = quorum, name = "sleeps")]
pub async fn sleeps(Text(millis): Text, State(bench): State<Bench>, context: Context) {
    bench.begin(&millis, &context);
    tokio::time::sleep(Duration::from_millis(millis.parse().unwrap())).await;
    bench.end(&millis);
}

/// Works without end, and stops when it is told to.
#[consumer(queue = "obeys", declare = quorum, name = "obeys")]
pub async fn obeys(Text(what): Text, State(bench): State<Bench>, context: Context) -> Result<(), String> {
    bench.begin(&what, &context);
    context.cancelled().await;
    bench.end(&what);
    Err("stopped".to_owned())
}

/// Works without end, whatever it is told.
#[consumer(queue = "deaf", declare = quorum, name = "deaf")]
pub async fn deaf(Text(what): Text, State(bench): State<Bench>, context: Context) {
    bench.begin(&what, &context);
    std::future::pending::<()>().await;
}

/// Fails, and waits in the consumer for its next try.
#[consumer(queue = "fails", declare = quorum, name = "fails", retry = fixed(5, "5m", wait_in_broker_from = "10m"))]
pub async fn fails(Text(what): Text, State(bench): State<Bench>, context: Context) -> Result<(), String> {
    bench.begin(&what, &context);
    Err("no".to_owned())
}

/// One handler at a time; the other messages are held.
#[consumer(queue = "queues", declare = quorum, name = "queues", concurrency = 1)]
pub async fn queues(Text(what): Text, State(bench): State<Bench>, context: Context) {
    bench.begin(&what, &context);
    bench.0.go.acquire().await.unwrap().forget();
    bench.end(&what);
}

/// The consumers of this file on a broker of their own.
pub fn app(bench: &Bench, broker: &Memory) -> App {
    App::new().transport(broker.clone()).state(bench.clone())
}

pub fn everyone(app: App) -> App {
    app.consumer::<works>()
        .consumer::<sleeps>()
        .consumer::<obeys>()
        .consumer::<deaf>()
        .consumer::<fails>()
        .consumer::<queues>()
}

pub const QUEUES: [&str; 6] = ["works", "sleeps", "obeys", "deaf", "fails", "queues"];

pub fn put(broker: &Memory, queue: &str, body: &str) {
    let properties = Properties { content_type: Some("text/plain".to_owned()), ..Properties::default() };
    let routing_key = queue.to_owned();
    let body = body.to_owned().into();
    let message = Outgoing { exchange: String::new(), routing_key, mandatory: true, properties, body };
    assert_eq!(broker.publish(message).unwrap(), Routing::Routed);
}

/// Waits until the running application is so.
pub async fn until(running: &Running, condition: impl Fn(&Drained) -> bool) {
    while !condition(&running.account()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Asserts that the account adds up and that the broker agrees with it: what was not accepted or set aside is still there.
pub fn adds_up(drained: &Drained, broker: &Memory, published: usize) {
    let totals = &drained.totals;
    let left = u64::try_from(drained.left.total()).unwrap();
    assert_eq!(totals.delivered, totals.settled() + left, "{drained:?}");
    let gone = usize::try_from(totals.acked + totals.duplicate).unwrap();
    let aside = usize::try_from(totals.set_aside()).unwrap();
    let there: usize =
        QUEUES.iter().filter(|queue| broker.view(|view| view.exists(queue))).map(|queue| broker.depth(queue)).sum();
    assert_eq!(there + gone + aside, published, "{drained:?}");
}
