use std::time::Duration;

use acemq::transport::{
    ConnectError, Role, Routing, Transport,
    rabbitmq::{Config, RabbitMq},
};
use acemq_tests::{
    needs,
    rabbitmq::{Node, Version},
    wait::within,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::bench::{Bench, SOON, message};

/// A node with a certificate for 127.0.0.1, the URL of its TLS port, and the certificate of who signed it.
async fn node(files: &std::path::Path) -> (Node, String, String) {
    let mut authority = CertificateParams::new(vec![]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    std::fs::write(files.join("authority.pem"), authority.pem()).unwrap();
    std::fs::write(files.join("server.pem"), server.pem()).unwrap();
    std::fs::write(files.join("key.pem"), key.serialize_pem()).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let file = |name: &str| files.join(name).display().to_string();
    let node = Node::builder(Version::V3)
        .conf(&format!("listeners.ssl.1 = 127.0.0.1:{port}"))
        .conf(&format!("ssl_options.cacertfile = {}", file("authority.pem")))
        .conf(&format!("ssl_options.certfile = {}", file("server.pem")))
        .conf(&format!("ssl_options.keyfile = {}", file("key.pem")))
        .start()
        .await;
    (node, format!("amqps://guest:hunter2@127.0.0.1:{port}"), authority.pem())
}

async fn error(config: Config) -> ConnectError {
    let transport = RabbitMq::with(config.connect_timeout(Duration::from_secs(5))).unwrap();
    let error = within(SOON, "a failing connect", transport.connect(Role::Publish)).await.unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_verified() {
    needs!(RabbitMq3);
    let files = tempfile::tempdir().unwrap();
    let (node, url, authority) = node(files.path()).await;
    let good = url.replace("hunter2", "guest");

    let untrusted = error(Config::new(&url)).await;
    assert!(untrusted.to_string().contains("TLS failed: invalid peer certificate: UnknownIssuer"), "{untrusted}");
    let other_name = error(Config::new(url.replace("127.0.0.1", "localhost")).root_certificates(&authority)).await;
    assert!(other_name.to_string().contains("not valid for name"), "{other_name}");
    let wrong = error(Config::new(&url).root_certificates(&authority)).await;
    assert!(matches!(wrong, ConnectError::Credentials { .. }), "{wrong:?}");

    let bench = Bench::with(Config::new(&good).root_certificates(&authority)).await;
    let queue = bench.queue().await;
    assert_eq!(bench.send(message(&queue, &"x".repeat(1_000_000))).await, Ok(Routing::Routed));
    let mut subscription = bench.subscribe(&queue, 1).await;
    assert_eq!(crate::bench::next(&mut subscription).await.body.len(), 1_000_000);
    bench.close().await;

    // One side with TLS and the other without.
    let plain = node.url().replace("amqp://", "amqps://");
    let neither = error(Config::new(plain).root_certificates(&authority)).await;
    assert!(matches!(neither, ConnectError::Other { .. } | ConnectError::TimedOut { .. }), "{neither:?}");
    let neither = error(Config::new(url.replace("amqps://", "amqp://"))).await;
    assert!(matches!(neither, ConnectError::Other { .. } | ConnectError::TimedOut { .. }), "{neither:?}");
}
