//! Accept and close, a thousand times.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use acemq::{App, Context, State, Text, consumer};
use acemq_tests::{
    amqp::Client,
    needs,
    rabbitmq::{self, Version},
    unique,
};
use tokio::sync::Notify;

#[derive(Clone, Default)]
struct Seen(Arc<(AtomicUsize, AtomicUsize, Notify)>);

#[consumer(queue = "accepted", declare = quorum, name = "accepted")]
async fn accepted(_: Text, State(seen): State<Seen>, context: Context) {
    seen.0.0.fetch_add(1, Ordering::SeqCst);
    seen.0.1.fetch_add(usize::from(context.redelivered()), Ordering::SeqCst);
    seen.0.2.notify_one();
}

const ROUNDS: usize = 1_000;

async fn accept_and_close(version: Version) {
    let node = rabbitmq::shared(version).await;
    let vhost = unique("rounds");
    node.add_vhost(&vhost).await;
    let url = node.url_for("guest", "guest", &vhost);
    let seen = Seen::default();
    let start = async || App::new().url(&url).state(seen.clone()).consumer::<accepted>().start().await.unwrap();
    let _ = start().await.close().await;
    let client = Client::connect(&url).await;
    let (began, mut longest) = (Instant::now(), Duration::ZERO);
    for round in 1..=ROUNDS {
        let properties = lapin::BasicProperties::default().with_content_type("text/plain".into());
        client.publish("", "accepted", b"a", properties).await;
        let running = start().await;
        seen.0.2.notified().await;
        let closing = Instant::now();
        let drained = running.close().await;
        longest = longest.max(closing.elapsed());
        assert_eq!((drained.finished, drained.totals.acked, drained.totals.delivered), (true, 1, 1), "round {round}");
    }
    println!("{ROUNDS} rounds took {:?}, the longest close {longest:?}", began.elapsed());
    assert_eq!(client.take_all("accepted").await, []);
    assert_eq!((seen.0.0.load(Ordering::SeqCst), seen.0.1.load(Ordering::SeqCst)), (ROUNDS, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_rounds_of_accept_and_close_redeliver_nothing_on_rabbitmq_4() {
    needs!(RabbitMq4);
    accept_and_close(Version::V4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_rounds_of_accept_and_close_redeliver_nothing_on_rabbitmq_3() {
    needs!(RabbitMq3);
    accept_and_close(Version::V3).await;
}
