//! How fast messages are consumed and retried, beside the loop that lapin's documentation shows.
//!
//! `cargo bench -p acemq-tests --bench throughput`. Runs are interleaved on one private node, so that noise hits both sides;
//! what counts is the ratio. `ROUNDS` (5), `MESSAGES` (20000) and `HOPS` (5000) change the size.

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use acemq::{Ack, App, Context, Raw, State, consumer};
use acemq_tests::rabbitmq::{Node, Version};
use futures_util::StreamExt;
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
        QueueDeclareOptions, QueuePurgeOptions,
    },
    types::{AMQPValue, FieldTable},
};
use tokio::sync::Notify;

/// How often each message is sent round in the retry runs.
const ROUND_TRIPS: u32 = 10;

#[derive(Clone)]
struct Progress(Arc<Inner>);

struct Inner {
    done: AtomicUsize,
    goal: usize,
    started: std::sync::OnceLock<Instant>,
    finished: Notify,
}

impl Progress {
    fn new(goal: usize) -> Self {
        Self(Arc::new(Inner {
            done: AtomicUsize::new(0),
            goal,
            started: std::sync::OnceLock::new(),
            finished: Notify::new(),
        }))
    }

    fn one(&self) {
        self.0.started.get_or_init(Instant::now);
        if self.0.done.fetch_add(1, Ordering::Relaxed) + 1 == self.0.goal {
            self.0.finished.notify_one();
        }
    }

    /// Waits for the last one, and gives the rate from the first one on.
    async fn rate(&self) -> f64 {
        self.0.finished.notified().await;
        let goal = u32::try_from(self.0.goal).unwrap();
        f64::from(goal) / self.0.started.get().unwrap().elapsed().as_secs_f64()
    }
}

#[consumer(queue = "bench.consume", declare = quorum, prefetch = 500)]
async fn consume(_: Raw, State(progress): State<Progress>) {
    progress.one();
}

#[consumer(queue = "bench.hop", declare = quorum, prefetch = 500, retry = fixed(1_000, "1ms"))]
async fn hop(_: Raw, State(progress): State<Progress>, context: Context) -> Ack {
    if context.attempt() > ROUND_TRIPS {
        return Ack::accept();
    }
    progress.one();
    Ack::retry("again")
}

async fn channel(url: &str) -> (Connection, Channel) {
    let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    channel.basic_qos(500, BasicQosOptions::default()).await.unwrap();
    (connection, channel)
}

fn persistent() -> BasicProperties {
    BasicProperties::default().with_delivery_mode(2).with_message_id("00000000-0000-4000-8000-000000000000".into())
}

async fn fill(url: &str, queue: &str, count: usize) {
    let (connection, channel) = channel(url).await;
    let arguments: FieldTable = [
        ("x-queue-type", "quorum".to_owned()),
        ("x-dead-letter-exchange", "acemq.dlx".to_owned()),
        ("x-dead-letter-routing-key", format!("{queue}.dlq")),
    ]
    .into_iter()
    .fold(FieldTable::default(), |mut table, (name, value)| {
        table.insert(name.into(), AMQPValue::LongString(value.into()));
        table
    });
    let durable = QueueDeclareOptions { durable: true, ..Default::default() };
    channel.queue_declare(queue.into(), durable, arguments).await.unwrap();
    channel.queue_purge(queue.into(), QueuePurgeOptions::default()).await.unwrap();
    let body = [b'x'; 100];
    let mut confirms = Vec::new();
    for _ in 0..count {
        let confirm = channel
            .basic_publish("".into(), queue.into(), BasicPublishOptions::default(), &body, persistent())
            .await
            .unwrap();
        confirms.push(confirm);
    }
    for confirm in confirms {
        confirm.await.unwrap();
    }
    connection.close(200, "".into()).await.unwrap();
}

async fn acemq_run(url: &str, app: App, progress: &Progress) -> f64 {
    let running = app.url(url).state(progress.clone()).start().await.unwrap();
    let rate = progress.rate().await;
    running.settled().await;
    let _ = running.close().await;
    rate
}

/// The loop of lapin's documentation: each ack awaited.
async fn lapin_consume(url: &str, count: usize) -> f64 {
    let (connection, channel) = channel(url).await;
    let mut consumer = channel
        .basic_consume("bench.consume".into(), "bench".into(), BasicConsumeOptions::default(), FieldTable::default())
        .await
        .unwrap();
    let progress = Progress::new(count);
    for _ in 0..count {
        let delivery = consumer.next().await.unwrap().unwrap();
        progress.one();
        delivery.ack(BasicAckOptions::default()).await.unwrap();
    }
    let rate = progress.rate().await;
    connection.close(200, "".into()).await.unwrap();
    rate
}

/// A retry by hand: publish a copy, await its confirm, ack the original, one by one.
async fn lapin_hop(url: &str, messages: usize) -> f64 {
    let (connection, channel) = channel(url).await;
    let mut consumer = channel
        .basic_consume("bench.hop".into(), "bench".into(), BasicConsumeOptions::default(), FieldTable::default())
        .await
        .unwrap();
    let progress = Progress::new(messages);
    for _ in 0..messages {
        let delivery = consumer.next().await.unwrap().unwrap();
        let mut headers = delivery.properties.headers().clone().unwrap_or_default();
        headers.insert("attempt".into(), AMQPValue::LongInt(2));
        let properties = delivery.properties.clone().with_headers(headers);
        let mandatory = BasicPublishOptions { mandatory: true, ..Default::default() };
        channel
            .basic_publish("".into(), "bench.hop".into(), mandatory, &delivery.data, properties)
            .await
            .unwrap()
            .await
            .unwrap();
        delivery.ack(BasicAckOptions::default()).await.unwrap();
        progress.one();
    }
    let rate = progress.rate().await;
    connection.close(200, "".into()).await.unwrap();
    rate
}

fn setting(name: &str, default: usize) -> usize {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    // `cargo test --benches` only asks whether it starts.
    if env::args().any(|argument| argument == "--test") {
        return;
    }
    let (rounds, messages, hops) = (setting("ROUNDS", 5), setting("MESSAGES", 20_000), setting("HOPS", 5_000));
    let node = Node::start(Version::V4).await;
    let url = node.url();
    let trips = usize::try_from(ROUND_TRIPS).unwrap();
    let mut rates: [Vec<f64>; 4] = Default::default();
    let mut ratios: [Vec<f64>; 2] = Default::default();
    for round in 0..rounds {
        fill(&url, "bench.consume", messages).await;
        let ours = acemq_run(&url, App::new().consumer::<consume>(), &Progress::new(messages)).await;
        fill(&url, "bench.consume", messages).await;
        let theirs = lapin_consume(&url, messages).await;
        fill(&url, "bench.hop", hops / trips).await;
        let our_hops = acemq_run(&url, App::new().consumer::<hop>(), &Progress::new(hops)).await;
        let few = hops.min(1_000);
        fill(&url, "bench.hop", few).await;
        let their_hops = lapin_hop(&url, few).await;
        println!(
            "round {}: consume {ours:.0}/s against {theirs:.0}/s; hop {our_hops:.0}/s against {their_hops:.0}/s",
            round + 1
        );
        for (list, rate) in rates.iter_mut().zip([ours, theirs, our_hops, their_hops]) {
            list.push(rate);
        }
        ratios[0].push(ours / theirs);
        ratios[1].push(our_hops / their_hops);
    }
    let [ours, theirs, our_hops, their_hops] = rates.each_mut().map(|list| median(list));
    println!("\nmedians of {rounds} rounds, 100-byte messages, prefetch 500, RabbitMQ {:?}", node.version());
    println!("consume: acemq {ours:.0}/s, lapin's loop {theirs:.0}/s, ratio {:.2}", median(&mut ratios[0]));
    println!("retry hop: acemq {our_hops:.0}/s, by hand {their_hops:.0}/s, ratio {:.2}", median(&mut ratios[1]));
}
