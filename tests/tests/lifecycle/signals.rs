//! SIGTERM, with every kind of handler.

use std::time::{Duration, Instant};

use acemq_tests::{
    amqp::Client,
    needs,
    process::{Builder, Program},
    proxy::{Direction, Proxy},
    rabbitmq::{self, Node, Version},
    unique,
};
use lapin::BasicProperties;

use super::child::{DRAIN, GRACE, QUEUES};

const SOON: Duration = Duration::from_secs(30);

/// The close of the connections, the end of the process, and a machine that is busy.
const SLACK: Duration = Duration::from_secs(3);

/// How long a close waits for a broker that has fallen silent.
const SILENCE: Duration = Duration::from_secs(5);

/// A broker, and a program on it.
struct Bench {
    client: Client,
    program: Program,
}

impl Bench {
    async fn start(version: Version) -> Self {
        let node = rabbitmq::shared(version).await;
        let vhost = unique("lifecycle");
        node.add_vhost(&vhost).await;
        let url = node.url_for("guest", "guest", &vhost);
        Self::at(&url, &url).await
    }

    /// The program connects to one address, the test to another.
    async fn at(url: &str, own: &str) -> Self {
        let program = Builder::test("child::runs_until_a_signal")
            .env("ACEMQ_URL", url)
            .env("ACEMQ_ACTUATOR", "off")
            .env("ACEMQ_DRAIN_TIMEOUT", format!("{}s", DRAIN.as_secs()))
            .start();
        program.line("started", SOON).await;
        Self { client: Client::connect(own).await, program }
    }

    async fn put(&self, queue: &str, id: &str, body: &str) {
        let properties = BasicProperties::default()
            .with_content_type("text/plain".into())
            .with_message_id(id.into())
            .with_delivery_mode(2);
        self.client.publish("", queue, body.as_bytes(), properties).await;
    }

    async fn begun(&self, queue: &str, body: &str) {
        self.program.line(&format!("begun {queue} {body} attempt 1"), SOON).await;
    }

    /// Ends the program; gives its exit code, its account, and how long it took.
    async fn terminate(&mut self) -> (Option<i32>, String, Duration) {
        let started = Instant::now();
        self.program.terminate();
        let account = self.program.line("account: ", DRAIN + GRACE + SILENCE + SLACK + SLACK).await;
        let code = self.program.exit_code(SLACK).await;
        let took = started.elapsed();
        println!("ended after {took:?} with {code:?}: {account}");
        (code, account, took)
    }

    /// The ids of what is left in the queues; each with its attempt unchanged.
    async fn left(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for queue in QUEUES {
            for message in self.client.take_all(queue).await {
                assert_eq!(message.number_header("x-acemq-attempt"), None, "{queue}");
                let id = message.properties.message_id().as_ref().map(ToString::to_string);
                ids.push(id.unwrap_or_default());
            }
            assert_eq!(self.client.ready(&format!("{queue}.dlq")).await, Some(0), "{queue}");
        }
        ids.sort_unstable();
        ids
    }
}

/// What a shutdown meets, and what it has to make of it.
struct Case {
    name: &'static str,
    /// Queue, id, body; and whether the handler is to have begun before the signal.
    messages: &'static [(&'static str, &'static str, &'static str, bool)],
    at_least: Duration,
    at_most: Duration,
    code: i32,
    account: &'static str,
    left: &'static [&'static str],
}

const CASES: [Case; 8] = [
    Case {
        name: "handlers that end in time",
        messages: &[("sleeps", "a", "100", true), ("sleeps", "b", "1500", true)],
        at_least: Duration::from_millis(1_000),
        at_most: DRAIN,
        code: 0,
        account: "delivered 2 acked 2 set aside 0 unstarted 0 waiting 0 stopped 0 abandoned 0 lost 0 finished true",
        left: &[],
    },
    Case {
        name: "a handler that is told to stop",
        messages: &[("sleeps", "a", "100", true), ("obeys", "b", "b", true)],
        at_least: DRAIN,
        at_most: DRAIN.saturating_add(SLACK),
        code: 0,
        account: "delivered 2 acked 1 set aside 0 unstarted 0 waiting 0 stopped 1 abandoned 0 lost 0 finished true",
        left: &["b"],
    },
    Case {
        name: "a handler that takes longer than the deadline and is deaf",
        messages: &[("sleeps", "a", "5000", true), ("deaf", "b", "b", true)],
        at_least: DRAIN.saturating_add(GRACE),
        at_most: DRAIN.saturating_add(GRACE).saturating_add(SLACK),
        code: 1,
        account: "delivered 2 acked 0 set aside 0 unstarted 0 waiting 0 stopped 0 abandoned 2 lost 0 finished false",
        left: &["a", "b"],
    },
    Case {
        name: "a blocking handler that never returns",
        messages: &[("blocks", "a", "a", true)],
        at_least: DRAIN.saturating_add(GRACE),
        at_most: DRAIN.saturating_add(GRACE).saturating_add(SLACK),
        code: 1,
        account: "delivered 1 acked 0 set aside 0 unstarted 0 waiting 0 stopped 0 abandoned 1 lost 0 finished false",
        left: &["a"],
    },
    Case {
        name: "an async handler that never lets its thread go",
        messages: &[("spins", "a", "a", true)],
        at_least: DRAIN.saturating_add(GRACE),
        // A second for its channel, and one for the process.
        at_most: DRAIN.saturating_add(GRACE).saturating_add(SLACK).saturating_add(Duration::from_secs(2)),
        code: 1,
        account: "delivered 1 acked 0 set aside 0 unstarted 0 waiting 0 stopped 0 abandoned 1 lost 0 finished false",
        left: &["a"],
    },
    Case {
        name: "waits of minutes",
        messages: &[("fails", "a", "a", true), ("fails", "b", "b", true)],
        at_least: Duration::ZERO,
        at_most: DRAIN,
        code: 0,
        account: "delivered 2 acked 0 set aside 0 unstarted 0 waiting 2 stopped 0 abandoned 0 lost 0 finished true",
        left: &["a", "b"],
    },
    Case {
        name: "held deliveries",
        messages: &[("queues", "a", "800", true), ("queues", "b", "800", false), ("queues", "c", "800", false)],
        at_least: Duration::ZERO,
        at_most: DRAIN,
        code: 0,
        account: "delivered 3 acked 1 set aside 0 unstarted 2 waiting 0 stopped 0 abandoned 0 lost 0 finished true",
        left: &["b", "c"],
    },
    Case {
        name: "a message that is in progress elsewhere",
        messages: &[("claims", "one", "1000", true), ("claims", "one", "1000", false)],
        at_least: Duration::ZERO,
        at_most: DRAIN,
        code: 0,
        account: "delivered 2 acked 1 set aside 0 unstarted 0 waiting 1 stopped 0 abandoned 0 lost 0 finished true",
        left: &["one"],
    },
];

async fn every_case(version: Version) {
    for case in CASES {
        println!("{}", case.name);
        let mut bench = Bench::start(version).await;
        for (queue, id, body, begins) in case.messages {
            bench.put(queue, id, body).await;
            if *begins {
                bench.begun(queue, body).await;
            }
        }
        // Those that do not begin have to be received; nothing tells a test when.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let (code, account, took) = bench.terminate().await;
        assert_eq!(account, format!("account: {}", case.account), "{}", case.name);
        assert_eq!(code, Some(case.code), "{}", case.name);
        assert!(took >= case.at_least.saturating_sub(Duration::from_millis(400)), "{}: {took:?}", case.name);
        assert!(took <= case.at_most, "{}: {took:?}", case.name);
        assert_eq!(bench.left().await, case.left, "{}", case.name);
    }
}

#[tokio::test]
async fn sigterm_ends_every_kind_of_handler_in_time_on_rabbitmq_4() {
    needs!(RabbitMq4);
    every_case(Version::V4).await;
}

#[tokio::test]
async fn sigterm_ends_every_kind_of_handler_in_time_on_rabbitmq_3() {
    needs!(RabbitMq3);
    every_case(Version::V3).await;
}

#[tokio::test]
async fn a_second_signal_ends_the_wait() {
    needs!(RabbitMq4);
    let mut bench = Bench::start(Version::V4).await;
    bench.put("obeys", "a", "a").await;
    bench.begun("obeys", "a").await;
    let started = Instant::now();
    bench.program.terminate();
    bench.program.interrupt();
    assert_eq!(bench.program.exit_code(SOON).await, Some(0));
    assert!(started.elapsed() < DRAIN, "{:?}", started.elapsed());
    assert_eq!(bench.left().await, ["a"]);
}

#[tokio::test]
async fn a_confirm_that_never_comes_does_not_hold_the_process_and_the_message_runs_again() {
    needs!(RabbitMq4);
    let node = rabbitmq::shared(Version::V4).await;
    let vhost = unique("lifecycle");
    node.add_vhost(&vhost).await;
    let url = node.url_for("guest", "guest", &vhost);
    let proxy = Proxy::start(&url).await;
    let mut bench = Bench::at(proxy.url(), &url).await;
    bench.put("rejects", "a", "a").await;
    bench.begun("rejects", "a").await;
    // From here on no answer reaches the program, neither to its publish nor to its farewell.
    proxy.stall(Direction::ToClient);
    // The copy is on its way once more than heartbeats has gone to the broker.
    let before = proxy.passed(Direction::ToServer);
    acemq_tests::eventually(SOON, "the copy", async || match proxy.passed(Direction::ToServer) - before {
        100.. => Ok(()),
        little => Err(little),
    })
    .await;
    let (code, account, took) = bench.terminate().await;
    assert!(took <= DRAIN + GRACE + SILENCE + SLACK, "{took:?}");
    assert!(account.contains("delivered 1 acked 0 set aside 0"), "an unconfirmed copy counted: {account}");
    assert_eq!(code, Some(0), "the handler had finished");
    drop(proxy);
    // The copy may have arrived, the message is there all the same.
    acemq_tests::eventually(SOON, "the message", async || match bench.client.ready("rejects").await {
        Some(1) => Ok(()),
        other => Err(other),
    })
    .await;
}

#[tokio::test]
async fn a_broker_that_is_gone_holds_nobody_longer_than_the_deadline() {
    needs!(RabbitMq4);
    let node = Node::start(Version::V4).await;
    let mut bench = Bench::at(&node.url(), &node.url()).await;
    bench.put("sleeps", "a", "1000").await;
    bench.put("obeys", "b", "b").await;
    bench.begun("sleeps", "1000").await;
    bench.begun("obeys", "b").await;
    node.kill();
    let (code, account, took) = bench.terminate().await;
    assert!(took <= DRAIN + GRACE + SLACK, "{took:?}");
    assert!(account.contains("delivered 2 acked 0") && account.contains("lost 2 finished true"), "{account}");
    assert_eq!(code, Some(0));
    node.start_again().await;
    bench.client = Client::connect(&node.url()).await;
    assert_eq!(bench.left().await, ["a", "b"]);
}

#[tokio::test]
async fn a_blocked_connection_holds_nobody_longer_than_the_deadline() {
    needs!(RabbitMq4);
    let node = Node::start(Version::V4).await;
    let mut bench = Bench::at(&node.url(), &node.url()).await;
    // One that is accepted before the alarm, and one in the middle of it.
    bench.put("sleeps", "a", "1").await;
    bench.begun("sleeps", "1").await;
    bench.put("queues", "b", "1500").await;
    bench.begun("queues", "1500").await;
    node.block_memory().await;
    let (code, account, took) = bench.terminate().await;
    assert!(took <= DRAIN + GRACE + SLACK, "{took:?}");
    assert_eq!(code, Some(0));
    assert!(account.contains("delivered 2 acked 2"), "an ack is not swallowed by the alarm: {account}");
    node.unblock().await;
    bench.client = Client::connect(&node.url()).await;
    assert!(bench.left().await.is_empty());
}
