//! What a start leaves on a real broker, read back from it and compared with the contract, name by name.

use std::collections::{BTreeMap, BTreeSet};

use acemq::{App, Raw, consumer, registry::RungKind};
use acemq_tests::{
    amqp::{Client, table, text},
    on_each_rabbitmq,
    rabbitmq::{self, Node, Queue},
};
use lapin::types::AMQPValue;
use serde_json::{Value, json};

#[consumer(queue = "plain", declare = quorum)]
async fn plain(_: Raw) {}

#[consumer(queue = "fixed", declare = classic, retry = fixed(4, "30s"))]
async fn fixed(_: Raw) {}

#[consumer(queue = "doubling", declare = quorum, retry = exponential(6, "10s", "1m"), bind = ("amq.topic", "order.*"))]
async fn doubling(_: Raw) {}

/// Name, type and arguments of each queue.
type Found = BTreeMap<String, (String, Value)>;

fn expected(rungs: RungKind) -> Found {
    let mut all = Found::new();
    for queue in ["plain", "fixed", "doubling"] {
        for aside in ["dlq", "parked"] {
            all.insert(format!("{queue}.{aside}"), ("classic".to_owned(), json!({})));
        }
        let classic = queue == "fixed";
        let mut arguments = json!({
            "x-dead-letter-exchange": "acemq.dlx",
            "x-dead-letter-routing-key": format!("{queue}.dlq"),
        });
        if !classic {
            arguments["x-queue-type"] = json!("quorum");
        }
        all.insert(queue.to_owned(), (if classic { "classic" } else { "quorum" }.to_owned(), arguments));
    }
    for (queue, delay, ttl) in [("fixed", "30s", 30_000), ("doubling", "40s", 40_000), ("doubling", "1m", 60_000)] {
        let mut arguments = json!({
            "x-message-ttl": ttl,
            "x-dead-letter-exchange": "acemq.retry",
            "x-dead-letter-routing-key": queue,
        });
        if rungs == RungKind::Quorum {
            arguments["x-queue-type"] = json!("quorum");
            arguments["x-dead-letter-strategy"] = json!("at-least-once");
            arguments["x-overflow"] = json!("reject-publish");
        }
        let kind = if rungs == RungKind::Quorum { "quorum" } else { "classic" };
        all.insert(format!("{queue}.retry.{delay}"), (kind.to_owned(), arguments));
    }
    all
}

fn found(node: &Node, queues: Vec<Queue>) -> Found {
    assert!(queues.iter().all(|queue| queue.durable));
    let mut found = Found::new();
    for mut queue in queues {
        // RabbitMQ 4 writes the type that a vhost gives to queues without one into their arguments by itself; 3.10 does not,
        // and shows there that acemq sends none.
        if node.version()[0] >= 4 && queue.kind == "classic" {
            assert_eq!(queue.arguments.remove("x-queue-type"), Some(json!("classic")));
        }
        found.insert(queue.name, (queue.kind, Value::Object(queue.arguments.into_iter().collect())));
    }
    found
}

async fn compare(node: &'static Node, rungs: RungKind) {
    let vhost = rabbitmq::vhost(node).await;
    let app = || {
        App::new()
            .url(node.url_for("guest", "guest", &vhost))
            .rungs(rungs)
            .consumer::<plain>()
            .consumer::<fixed>()
            .consumer::<doubling>()
    };
    let _ = app().start().await.unwrap().close().await;
    // The second start finds everything as it wants it.
    let _ = app().start().await.unwrap().close().await;

    assert_eq!(found(node, node.queues_in(&vhost).await), expected(rungs));

    let exchanges: BTreeSet<_> = node
        .exchanges_in(&vhost)
        .await
        .into_iter()
        .filter(|exchange| !exchange.name.is_empty() && !exchange.name.starts_with("amq."))
        .map(|exchange| (exchange.name, exchange.kind, exchange.durable))
        .collect();
    let direct = |name: &str| (name.to_owned(), "direct".to_owned(), true);
    assert_eq!(exchanges, BTreeSet::from([direct("acemq.dlx"), direct("acemq.retry")]));

    let bindings: BTreeSet<_> = node
        .bindings_in(&vhost)
        .await
        .into_iter()
        .filter(|binding| !binding.exchange.is_empty())
        .map(|binding| (binding.exchange, binding.key, binding.destination))
        .collect();
    let mut wanted = BTreeSet::new();
    for queue in ["plain", "fixed", "doubling"] {
        for aside in ["dlq", "parked"] {
            let name = format!("{queue}.{aside}");
            wanted.insert(("acemq.dlx".to_owned(), name.clone(), name));
        }
    }
    for queue in ["fixed", "doubling"] {
        wanted.insert(("acemq.retry".to_owned(), queue.to_owned(), queue.to_owned()));
    }
    wanted.insert(("amq.topic".to_owned(), "order.*".to_owned(), "doubling".to_owned()));
    assert_eq!(bindings, wanted);
}

on_each_rabbitmq! {
    async fn a_start_declares_exactly_the_contract_with_quorum_rungs(node: &'static Node) {
        compare(node, RungKind::Quorum).await;
    }

    async fn a_rung_whose_delay_another_client_wrote_as_a_shorter_number_is_the_same_rung(node: &'static Node) {
        let vhost = rabbitmq::vhost(node).await;
        let url = node.url_for("guest", "guest", &vhost);
        let arguments = table([
            ("x-message-ttl", AMQPValue::LongInt(30_000)),
            ("x-dead-letter-exchange", text("acemq.retry")),
            ("x-dead-letter-routing-key", text("fixed")),
        ]);
        Client::connect(&url).await.declare("fixed.retry.30s", arguments).await;
        let app = App::new().url(url).rungs(RungKind::Classic).consumer::<fixed>();
        let _ = app.start().await.unwrap().close().await;
    }

    async fn a_start_declares_exactly_the_contract_with_classic_rungs(node: &'static Node) {
        compare(node, RungKind::Classic).await;
    }
}
