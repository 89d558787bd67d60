//! Its RabbitMQ nodes do what their methods say.

use std::time::{Duration, Instant};

use acemq_tests::amqp::{self, Client, table, text};
use acemq_tests::rabbitmq::{Cluster, Node, Version};
use acemq_tests::{eventually, on_each_rabbitmq, unique};

const SOON: Duration = Duration::from_secs(20);

on_each_rabbitmq! {
    async fn a_shared_node_serves_a_client(node: &'static Node) {
        let queue = unique("served");
        let client = Client::connect(&node.url()).await;
        client.declare(&queue, table([("x-queue-type", text("quorum"))])).await;
        client.send(&queue, "{}").await;
        client.send(&queue, "[]").await;
        assert_eq!(client.peek_all(&queue).await.len(), 2);
        eventually(SOON, "two messages ready", async || match client.ready(&queue).await {
            Some(2) => Ok(()),
            other => Err(other),
        })
        .await;

        let seen = eventually(SOON, "two messages listed", async || {
            let seen = node.queue(&queue).await.expect("the queue is listed");
            if seen.ready == 2 { Ok(seen) } else { Err(seen) }
        })
        .await;
        assert_eq!((seen.kind.as_str(), seen.messages, seen.unacked, seen.consumers), ("quorum", 2, 0, 0));
        assert_eq!(seen.arguments.get("x-queue-type"), Some(&"quorum".into()));
        assert!(node.bindings().await.iter().any(|binding| binding.exchange.is_empty() && binding.key == queue));
        assert!(node.exchanges().await.iter().any(|exchange| exchange.name == "amq.direct" && exchange.durable));

        let bodies: Vec<_> = client.take_all(&queue).await.iter().map(amqp::Received::text).collect();
        assert_eq!(bodies, ["{}", "[]"]);
        node.delete_queue(&queue).await;
        assert_eq!(client.ready(&queue).await, None);
    }

    async fn an_expression_of_any_size_comes_back(node: &'static Node) {
        assert_eq!(node.eval("X = 1, {X, ok, <<195,182>>}.").await, "{1,ok,<<\"ö\"/utf8>>}");
        assert_eq!(node.eval("lists:duplicate(100000, $a)").await.len(), 100_002);
        assert!(node.try_eval("1 = 2").await.unwrap_err().contains("badmatch"));
        assert!(node.try_eval("no expression").await.is_err());
        assert_eq!(node.ctl(["eval", "1 + 1."]).await.trim(), "2");
    }

    async fn a_user_may_only_what_it_was_permitted(node: &'static Node) {
        let (user, vhost) = (unique("user"), unique("vhost/with a blank"));
        node.add_vhost(&vhost).await;
        node.add_user(&user, "p@ss/word", &vhost, ["^mine", "^mine", "^mine"]).await;
        let client = Client::connect(&node.url_for(&user, "p@ss/word", &vhost)).await;
        client.declare("mine", table([])).await;
        let channel = client.open_channel().await;
        let refused = channel.queue_declare("yours".into(), lapin::options::QueueDeclareOptions::durable(), table([]));
        assert!(refused.await.unwrap_err().to_string().contains("ACCESS_REFUSED"));
        assert_eq!(node.queues_in(&vhost).await.len(), 1);
    }
}

/// Kills, stops, blocks and closes a node of its own.
async fn a_node_survives(version: Version) {
    let start = Instant::now();
    let node = Node::builder(version).conf("heartbeat = 10").start().await;
    eprintln!("{:?} started in {:?}", node.version(), start.elapsed());
    assert_eq!(node.version()[0], version.major());
    let client = Client::connect(&node.url()).await;
    client.declare("kept", table([])).await;
    client.send("kept", "1").await;
    node.write_out().await;

    let start = Instant::now();
    node.kill();
    eprintln!("killed in {:?}", start.elapsed());
    eventually(SOON, "a lost connection", async || {
        if client.connection().status().connected() { Err("connected") } else { Ok(()) }
    })
    .await;
    let start = Instant::now();
    node.start_again().await;
    eprintln!("started again in {:?}", start.elapsed());
    let client = Client::connect(&node.url()).await;
    assert_eq!(client.ready("kept").await, Some(1), "a durable message outlives SIGKILL");

    let start = Instant::now();
    node.stop().await;
    eprintln!("stopped in {:?}", start.elapsed());
    assert_eq!(node.process_id(), None);
    node.start_again().await;
    let client = Client::connect(&node.url()).await;
    assert_eq!(client.take_all("kept").await.len(), 1);

    for memory in [true, false] {
        let start = Instant::now();
        if memory {
            node.block_memory().await;
        } else {
            node.block_disk().await;
        }
        eprintln!("blocked in {:?}", start.elapsed());
        // The first publish after the alarm is written, and its confirm waits.
        let publish = client.send("kept", "blocked");
        tokio::pin!(publish);
        assert!(tokio::time::timeout(Duration::from_millis(500), &mut publish).await.is_err());
        assert!(client.connection().status().blocked());
        node.unblock().await;
        publish.await;
    }

    node.close_all_connections().await;
    eventually(SOON, "a lost connection", async || {
        if client.connection().status().connected() { Err("connected") } else { Ok(()) }
    })
    .await;
    let directory = node.directory();
    assert!(node.log().contains("Server startup complete"));
    drop(node);
    assert!(!directory.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_rabbitmq_3_survives_what_is_done_to_it() {
    acemq_tests::needs!(RabbitMq3);
    a_node_survives(Version::V3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_rabbitmq_4_survives_what_is_done_to_it() {
    acemq_tests::needs!(RabbitMq4);
    a_node_survives(Version::V4).await;
}

/// Kills the leader of a quorum queue.
async fn a_cluster_survives(version: Version) {
    let start = Instant::now();
    let cluster = Cluster::start(version, 3).await;
    eprintln!("three nodes of {:?} started in {:?}", cluster.node(0).version(), start.elapsed());
    let client = Client::connect(&cluster.node(0).url()).await;
    client.declare("replicated", table([("x-queue-type", text("quorum"))])).await;
    client.send("replicated", "1").await;
    let leader = cluster.leader_of("replicated").await;
    assert_eq!(leader.name(), cluster.node(0).name(), "a queue is led where it was declared");
    leader.kill();

    let client = Client::connect(&cluster.node(1).url()).await;
    let next = cluster.leader_of("replicated").await;
    assert_ne!(next.name(), leader.name());
    eventually(SOON, "the message from another node", async || client.get("replicated").await.ok_or(())).await;
    leader.start_again().await;
    cluster.all_running().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_rabbitmq_3_survives_its_leader() {
    acemq_tests::needs!(RabbitMq3);
    a_cluster_survives(Version::V3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_rabbitmq_4_survives_its_leader() {
    acemq_tests::needs!(RabbitMq4);
    a_cluster_survives(Version::V4).await;
}
