use std::time::{Duration, Instant};

use acemq::transport::{
    ConnectError, Role, Transport,
    rabbitmq::{Config, RabbitMq},
};
use acemq_tests::{on_each_rabbitmq, rabbitmq::Node, unique, wait::within};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::bench::{SOON, is_open};

async fn error(config: Config) -> ConnectError {
    let transport = RabbitMq::with(config).unwrap();
    let error = within(SOON, "a failing connect", transport.connect(Role::Publish)).await.unwrap_err();
    let text = format!("{error} {error:?} {transport:?}");
    assert!(!text.contains("hunter2"), "{text}");
    error
}

on_each_rabbitmq! {
    async fn a_wrong_password_and_a_missing_vhost_are_told_apart(node: &'static Node) {
        let address = format!("127.0.0.1:{}", node.port());
        let user = "guest".to_owned();
        let wrong = error(Config::new(node.url_for("guest", "hunter2", "/"))).await;
        assert_eq!(wrong, ConnectError::Credentials { address: address.clone(), user });
        assert!(!wrong.is_transient());

        let missing = error(Config::new(node.url_for("guest", "guest", "not there"))).await;
        assert!(matches!(&missing, ConnectError::Vhost { vhost, why, .. } if vhost == "not there" && why.contains("not there")), "{missing:?}");
        let (stranger, vhost) = (unique("user"), unique("vhost"));
        node.add_vhost(&vhost).await;
        node.add_user(&stranger, "hunter2", "/", [".*", ".*", ".*"]).await;
        let refused = error(Config::new(node.url_for(&stranger, "hunter2", &vhost))).await;
        assert!(matches!(&refused, ConnectError::Vhost { user, .. } if *user == stranger), "{refused:?}");
    }

    async fn a_limit_of_connections_passes(node: &'static Node) {
        let vhost = unique("vhost");
        node.add_vhost(&vhost).await;
        node.ctl(["set_vhost_limits", "-p", &vhost, "{\"max-connections\": 1}"]).await;
        let transport = RabbitMq::new(node.url_for("guest", "guest", &vhost)).unwrap();
        let _first = transport.connect(Role::Consume).await.unwrap();
        let refused = error(Config::new(node.url_for("guest", "guest", &vhost))).await;
        assert!(refused.is_transient(), "{refused:?}");
    }

    async fn of_several_addresses_the_first_that_answers_is_used(node: &'static Node) {
        let nobody = nobody().await;
        let transport = RabbitMq::with(Config::new(&nobody).or(node.url())).unwrap();
        assert!(is_open(&*transport.connect(Role::Consume).await.unwrap()));
        assert!(transport.address().contains(&format!(", 127.0.0.1:{}", node.port())));
    }

    async fn connections_have_names(node: &'static Node) {
        let name = unique("name");
        let transport = RabbitMq::with(Config::new(node.url()).connection_name(&name)).unwrap();
        let _connection = transport.connect(Role::Consume).await.unwrap();
        let names = node.ctl(["list_connections", "client_properties"]).await;
        assert!(names.contains(&format!("{name} (consume)")), "{names}");
    }
}

/// An address where nobody listens.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("amqp://u:hunter2@{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_named() {
    let nobody = nobody().await;
    let refused = error(Config::new(&nobody)).await;
    let port = nobody.rsplit_once(':').unwrap().1;
    assert!(matches!(&refused, ConnectError::Unreachable { address, .. } if address.ends_with(port)), "{refused:?}");
    assert!(refused.is_transient());
    let unknown = error(Config::new("amqp://u:hunter2@no-such-host.invalid")).await;
    assert!(matches!(unknown, ConnectError::Unreachable { .. }), "{unknown:?}");
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("amqp://u:hunter2@{}", listener.local_addr().unwrap());
    let started = Instant::now();
    let after = Duration::from_millis(300);
    let silent = error(Config::new(url).connect_timeout(after)).await;
    assert!(matches!(silent, ConnectError::TimedOut { after: waited, .. } if waited == after), "{silent:?}");
    assert!(started.elapsed() >= after);
    // The header of the protocol, and then the end: nothing holds the socket.
    let (mut peer, _) = listener.accept().await.unwrap();
    let mut heard = Vec::new();
    within(SOON, "the end of the socket", peer.read_to_end(&mut heard)).await.unwrap();
    assert_eq!(heard, b"AMQP\x00\x00\x09\x01");
}

#[tokio::test]
async fn a_peer_that_speaks_another_protocol_is_told() {
    for (answer, told) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "AMQP"),
        (b"AMQP\x03\x01\x00\x00", "AMQP"),
        (b"", "closed the connection"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("amqp://u:hunter2@{}", listener.local_addr().unwrap());
        let peer = tokio::spawn(async move {
            let (mut peer, _) = listener.accept().await.unwrap();
            peer.read_exact(&mut [0; 8]).await.unwrap();
            peer.write_all(answer).await.unwrap();
        });
        let other = error(Config::new(url).connect_timeout(Duration::from_secs(2))).await;
        assert!(other.to_string().contains(told), "{answer:?}: {other}");
        assert!(matches!(other, ConnectError::Other { .. }), "{answer:?}: {other:?}");
        peer.await.unwrap();
    }
}
