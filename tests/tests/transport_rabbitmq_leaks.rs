//! After a close nothing is left of a connection: no thread, no socket. Alone in its process, to count them.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reports a failure by a panic"
)]

use std::{fs, sync::Arc, time::Duration};

use acemq::{
    envelope::{Properties, Table},
    topology::Declaration,
    transport::{
        Connection, Lane, Outgoing, Role, Routing, Subscribe, Transport,
        rabbitmq::{Config, RabbitMq},
    },
};
use acemq_tests::{
    eventually, needs,
    rabbitmq::{Node, Version},
    unique,
};
use tokio::net::TcpListener;

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let mut names: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
    names.sort();
    names
}

fn sockets() -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

async fn use_it(transport: &RabbitMq) -> Vec<Arc<dyn Connection>> {
    let consume = transport.connect(Role::Consume).await.unwrap();
    let publish = transport.connect(Role::Publish).await.unwrap();
    let queue = unique("q");
    let wanted = Declaration::Queue { name: queue.clone(), arguments: Table::new() };
    consume.declare(&wanted).await.unwrap();
    let message = Outgoing {
        exchange: String::new(),
        routing_key: queue.clone(),
        mandatory: true,
        properties: Properties { message_id: Some(unique("id")), ..Properties::default() },
        body: bytes::Bytes::new(),
    };
    for lane in [Lane::Hop, Lane::User] {
        assert_eq!(publish.publish(message.clone(), lane).await, Ok(Routing::Routed));
    }
    let subscription = consume.subscribe(&Subscribe { queue, prefetch: 1, tag: unique("tag") }).await.unwrap();
    drop(subscription);
    vec![consume, publish]
}

async fn nothing_is_left(before: &(Vec<String>, usize), what: &str) {
    eventually(Duration::from_secs(10), what, async || {
        let now = (threads(), sockets());
        if now == *before { Ok(()) } else { Err(now) }
    })
    .await;
}

#[tokio::test]
async fn nothing_is_left_of_a_connection() {
    needs!(RabbitMq4);
    let node = Node::start(Version::V4).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let before = (threads(), sockets());

    let transport = RabbitMq::new(node.url()).unwrap();
    // A runtime has sockets of its own.
    let idle = sockets();
    let connections = use_it(&transport).await;
    assert_eq!(sockets(), idle + 2);
    for connection in &connections {
        connection.close().await;
    }
    // The sockets are gone when the close returns, not some time later.
    assert_eq!(sockets(), idle);
    drop((transport, connections));
    nothing_is_left(&before, "the end after a close").await;

    let transport = RabbitMq::new(node.url()).unwrap();
    let connections = use_it(&transport).await;
    drop(transport);
    drop(connections);
    nothing_is_left(&before, "the end after a drop").await;

    let transport = RabbitMq::new(node.url()).unwrap();
    let connections = use_it(&transport).await;
    node.kill();
    drop((transport, connections));
    nothing_is_left(&before, "the end after a kill").await;

    let url = format!("amqp://{}", silent.local_addr().unwrap());
    let transport = RabbitMq::with(Config::new(url).connect_timeout(Duration::from_millis(200))).unwrap();
    transport.connect(Role::Consume).await.unwrap_err();
    drop(transport);
    let (peer, _) = silent.accept().await.unwrap();
    drop(peer);
    nothing_is_left(&before, "the end of an attempt in vain").await;
}
