//! The ledger on RabbitMQ: a node that is killed, stopped, blocked and lied about by a proxy.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use acemq::transport::{
    Transport,
    rabbitmq::{Config, RabbitMq},
};
use acemq_tests::{
    amqp::{Client, Received},
    eventually,
    proxy::{Direction, End, Proxy},
    rabbitmq::{Cluster, Node, Version},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::{
    book::{Book, Excuses, Found, aside},
    fault::{self, Fault},
    script::{Letter, WORK},
    store::Store,
    trial::{self, Ground, Trial, all_queues, seeds},
};

/// The broker takes back what is held longer; every handler of the script but one is faster.
const CONSUMER_TIMEOUT: u64 = 4_000;

/// How old a queue has to be before its node may be killed.
pub(crate) const MATURITY: Duration = Duration::from_secs(6);

pub(crate) struct Broker<'a> {
    /// The node behind the proxy.
    node: &'a Node,
    /// Of which that is one, if it has companions.
    cluster: Option<&'a Cluster>,
    proxy: Proxy,
    /// When the last of the faults that end by themselves is over.
    over: Mutex<Instant>,
}

impl<'a> Broker<'a> {
    pub(crate) async fn behind_proxy(node: &'a Node, cluster: Option<&'a Cluster>) -> Self {
        Self { node, cluster, proxy: Proxy::start(&node.url()).await, over: Mutex::new(Instant::now()) }
    }

    /// Starts an application that declares everything, and closes it again.
    pub(crate) async fn declare_all(&self) {
        // A broker that has just started may need longer than the time-outs of a run allow.
        let running = eventually(Duration::from_mins(2), "a start", async || {
            trial::app(self, &Book::new(0), &Store::default()).start().await.map_err(|error| error.to_string())
        })
        .await;
        let _ = running.close().await;
    }

    fn lasts(&self, millis: u64) {
        let mut over = self.over.lock().unwrap();
        *over = (*over).max(Instant::now() + Duration::from_millis(millis));
    }

    async fn alarm(&self, millis: u64, disk: bool) {
        let what = if disk { "disk" } else { "memory" };
        self.node
            .eval(&format!(
                "rabbit_alarm:set_alarm({{{{resource_limit, {what}, node()}}, []}}), spawn(fun() -> \
                 timer:sleep({millis}), rabbit_alarm:clear_alarm({{resource_limit, {what}, node()}}) end), ok."
            ))
            .await;
        self.lasts(millis + 100);
    }
}

impl Ground for Broker<'_> {
    fn transport(&self) -> Arc<dyn Transport> {
        let config = Config::new(self.proxy.url())
            .heartbeat(Duration::from_secs(1))
            .connect_timeout(Duration::from_secs(3))
            .answer_timeout(Duration::from_secs(3))
            .confirm_timeout(Duration::from_secs(3))
            .close_timeout(Duration::from_secs(1));
        Arc::new(RabbitMq::with(config).unwrap())
    }

    async fn strike(&self, fault: Fault, book: &Book) {
        let proxy = &self.proxy;
        match fault {
            Fault::Cut => proxy.cut().await,
            Fault::Reset => proxy.reset().await,
            Fault::ResetMidWrite => proxy.reset_mid_write(),
            Fault::CutToServer(bytes) => proxy.cut_after_bytes(Direction::ToServer, bytes),
            Fault::CutToClient(bytes) => proxy.end_after_bytes(Direction::ToClient, bytes, End::Reset),
            Fault::Stall(millis) => {
                proxy.stall_both();
                tokio::time::sleep(Duration::from_millis(millis)).await;
                proxy.resume();
            }
            Fault::Refuse(millis) => {
                proxy.refuse().await;
                proxy.reset().await;
                tokio::time::sleep(Duration::from_millis(millis)).await;
                proxy.accept().await;
            }
            Fault::Alarm { millis, disk } => self.alarm(millis, disk).await,
            Fault::Kill => {
                self.node.kill();
                self.node.start_again().await;
            }
            Fault::KillLeader { queue, millis } => {
                let leader = self.cluster.expect("a leader among several nodes").leader_of(queue).await;
                leader.kill();
                tokio::time::sleep(Duration::from_millis(millis)).await;
                leader.start_again().await;
            }
            Fault::Stop => self.node.restart().await,
            Fault::CloseConnections => self.node.close_all_connections().await,
            // The letter that is held was sent at the start.
            Fault::Hold => {}
            Fault::DeleteSource(queue) => {
                self.delete(queue).await;
                book.source_deleted(queue, &[]);
            }
            Fault::DeleteRung(rung) => {
                let source = WORK.iter().find(|(.., rungs)| rungs.contains(&rung)).unwrap().0;
                self.delete(rung).await;
                book.rung_deleted(source);
            }
            Fault::DeleteAside(source, aside) => {
                self.delete(&aside.queue(source)).await;
                book.aside_deleted(source, aside.end());
            }
            other => panic!("RabbitMQ has no {other:?}"),
        }
    }

    async fn heal(&self) {
        self.proxy.resume();
        // A fault that waits for bytes would strike into the count.
        self.proxy.disarm();
        let over = *self.over.lock().unwrap();
        tokio::time::sleep(over.saturating_duration_since(Instant::now())).await;
    }

    async fn quiet(&self, book: &Book) -> Result<(), String> {
        let started = Instant::now();
        let client = Client::connect(&self.node.url()).await;
        loop {
            book.found(take(&client, all_queues().filter(|queue| aside(queue))).await);
            let open = book.open();
            if open.is_empty() {
                break;
            }
            if started.elapsed() > Duration::from_mins(1) {
                return Err(format!("after a minute letters are open: {open:?}"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for (queue, ..) in WORK {
            let mut consumers = client.consumers(queue).await;
            while consumers != Some(1) {
                if started.elapsed() > Duration::from_secs(70) {
                    return Err(format!("{queue} has {consumers:?} consumers"));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                consumers = client.consumers(queue).await;
            }
        }
        client.close().await;
        Ok(())
    }

    fn evidence(&self) -> String {
        let log = self.node.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(300)..].join("\n")
    }

    async fn collect(&self) -> Vec<Found> {
        let client = Client::connect(&self.node.url()).await;
        let found = take(&client, all_queues()).await;
        client.close().await;
        found
    }
}

impl Broker<'_> {
    async fn delete(&self, queue: &str) {
        let client = Client::connect(&self.node.url()).await;
        client.delete(queue).await;
        client.close().await;
    }
}

/// Takes out what is ready in these queues; one that is not there is empty.
async fn take(client: &Client, queues: impl Iterator<Item = String>) -> Vec<Found> {
    let mut found = Vec::new();
    for queue in queues {
        if client.ready(&queue).await.is_some_and(|ready| ready > 0) {
            found.extend(client.take_all(&queue).await.iter().map(|received| entry(&queue, received)));
        }
    }
    found
}

fn entry(queue: &str, received: &Received) -> Found {
    let letter: Letter = serde_json::from_slice(&received.body).unwrap();
    let attempt = received.number_header("x-acemq-attempt").and_then(|attempt| u32::try_from(attempt).ok());
    Found {
        queue: queue.to_owned(),
        run: letter.run,
        number: letter.number,
        attempt: attempt.unwrap_or_else(|| panic!("a copy without a sensible attempt: {received:?}")),
        reason: received.text_header("x-acemq-error"),
    }
}

async fn balances(version: Version) {
    let node = Node::builder(version)
        .conf(&format!("consumer_timeout = {CONSUMER_TIMEOUT}"))
        .advanced("[{rabbit, [{channel_tick_interval, 500}]}].\n")
        .start()
        .await;
    // RabbitMQ 3.10 may leave a quorum queue without a leader for good if it is killed within seconds of the declaration.
    let mut young = true;
    for seed in seeds(3) {
        let broker = Broker::behind_proxy(&node, None).await;
        if std::mem::take(&mut young) {
            broker.declare_all().await;
            tokio::time::sleep(MATURITY).await;
        }
        let mut random = StdRng::seed_from_u64(seed);
        let span = Duration::from_millis(random.random_range(500..2_000));
        let mut plan = fault::plan(&mut random, 4, span, fault::rabbitmq);
        let deletes =
            |fault: &Fault| matches!(fault, Fault::DeleteSource(_) | Fault::DeleteRung(_) | Fault::DeleteAside(..));
        if plan.iter().any(|(_, fault)| deletes(fault)) {
            plan.retain(|(_, fault)| *fault != Fault::Kill);
            young = true;
        }
        let hold = plan.iter().any(|(_, fault)| *fault == Fault::Hold).then_some(CONSUMER_TIMEOUT + 2_000);
        let excuses = Excuses { duplicates: !plan.is_empty(), crash_loops: false, no_reason: false };
        let letters = random.random_range(30..150);
        let summary = Trial { seed, letters, span, plan, excuses, hold }.run(&broker).await;
        println!("RabbitMQ {:?}, seed {seed}: {summary}", node.version());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_confirmed_message_is_accounted_for_on_rabbitmq_3() {
    acemq_tests::needs!(RabbitMq3);
    balances(Version::V3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_confirmed_message_is_accounted_for_on_rabbitmq_4() {
    acemq_tests::needs!(RabbitMq4);
    balances(Version::V4).await;
}
