//! What the server answers, and to whom.

use std::time::{Duration, Instant};

use acemq::{App, Error, State, Text, consumer, transport::memory::Memory};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::client::{address, ask, get, start};

#[derive(Clone)]
pub struct Secret(#[allow(dead_code)] pub &'static str);

#[consumer(queue = "served", declare = quorum, name = "served", retry = exponential(3, "20s", "1m"))]
async fn served(_: Text, State(_): State<Secret>) {}

fn app() -> App {
    App::new().state(Secret("hunter2")).origin("shop@here").consumer::<served>()
}

#[tokio::test]
async fn three_paths_answer_and_every_other_one_names_them() {
    let broker = Memory::private();
    let running = start(app(), &broker).await;
    for (path, kind) in [
        ("/acemq-health", "application/json"),
        ("/acemq-metrics", "text/plain; version=0.0.4"),
        ("/acemq-info", "application/json"),
        ("/acemq-health?verbose=1", "application/json"),
    ] {
        let answer = get(&running, path).await;
        assert_eq!(answer.code, 200, "{path}");
        assert!(answer.head.contains(&format!("content-type: {kind}")), "{path}: {}", answer.head);
        assert!(answer.head.contains("cache-control: no-store"), "{path}: {}", answer.head);
    }
    for path in ["/", "/metrics", "/acemq-health/", "/acemq-healthy", "//acemq-health", "/../acemq-health"] {
        let answer = get(&running, path).await;
        assert_eq!(answer.code, 404, "{path}");
        assert_eq!(answer.body, "there is /acemq-health, /acemq-metrics and /acemq-info\n", "{path}");
    }
    let _ = running.close().await;
}

#[tokio::test]
async fn only_get_and_head_are_allowed_and_head_has_no_body() {
    let broker = Memory::private();
    let running = start(app(), &broker).await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        for path in ["/acemq-health", "/acemq-metrics", "/acemq-info"] {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
            let answer = ask(address(&running), &request).await;
            assert_eq!(answer.code, 405, "{method} {path}");
            assert!(answer.head.contains("allow: get,head"), "{method}: {}", answer.head);
        }
    }
    let answer = ask(address(&running), "HEAD /acemq-health HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!((answer.code, &*answer.body), (200, ""));
    let _ = running.close().await;
}

#[tokio::test]
async fn a_name_that_points_here_by_somebody_elses_will_is_refused() {
    let broker = Memory::private();
    let running = start(app().actuator_host("metrics.shop.internal"), &broker).await;
    for (host, code) in [
        ("Host: localhost:9464\r\n", 200),
        ("Host: [::1]:9464\r\n", 200),
        ("Host: metrics.shop.internal\r\n", 200),
        ("Host: evil.example\r\n", 403),
        ("Host: localhost\r\nHost: evil.example\r\n", 403),
        ("Host:\r\n", 403),
        ("", 403),
    ] {
        for path in ["/acemq-health", "/acemq-metrics", "/acemq-info", "/else"] {
            let answer = ask(address(&running), &format!("GET {path} HTTP/1.1\r\n{host}\r\n")).await;
            let expected = if path == "/else" && code == 200 { 404 } else { code };
            assert_eq!(answer.code, expected, "{host:?} {path}");
            assert!(code == 200 || !answer.body.contains("served"), "{}", answer.body);
        }
    }
    assert_eq!(ask(address(&running), "GET /acemq-health HTTP/1.0\r\n\r\n").await.code, 200);
    let _ = running.close().await;
}

#[tokio::test]
async fn the_information_is_what_runs_here_and_nothing_secret() {
    let broker = Memory::private();
    let running = start(app(), &broker).await;
    let info = get(&running, "/acemq-info").await;
    let json = info.json();
    assert_eq!(json["origin"], "shop@here");
    assert_eq!((&json["transport"], &json["address"]), (&"memory".into(), &"memory://private".into()));
    let consumer = &json["consumers"][0];
    assert_eq!((&consumer["name"], &consumer["queue"]), (&"served".into(), &"served".into()));
    assert_eq!(
        consumer["waits"],
        serde_json::json!([{"delay": "20s", "in": "consumer"}, {"delay": "40s", "in": "broker"}])
    );
    assert!(!info.body.contains("hunter2"), "{}", info.body);
    let _ = running.close().await;
}

#[tokio::test]
async fn a_client_that_is_slow_or_one_too_many_is_cut_off_and_others_are_served() {
    let broker = Memory::private();
    let running = start(app(), &broker).await;
    let started = Instant::now();
    let mut slow = TcpStream::connect(address(&running)).await.unwrap();
    slow.write_all(b"GET /acemq-health HTTP/1.1\r\nHost: loc").await.unwrap();
    // One of 32 is taken; the rest and ten more.
    let mut idle = Vec::new();
    for _ in 0..41 {
        idle.push(TcpStream::connect(address(&running)).await.unwrap());
    }
    let mut turned_away = 0;
    for stream in &mut idle {
        let mut byte = [0];
        let closed = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut byte)).await;
        turned_away += usize::from(matches!(closed, Ok(Ok(0) | Err(_))));
    }
    assert_eq!(turned_away, 10);
    drop(idle);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(get(&running, "/acemq-health").await.code, 200);
    let mut rest = String::new();
    let _ = slow.read_to_string(&mut rest).await;
    let took = started.elapsed();
    assert!(took < Duration::from_secs(11) && !rest.contains("200 OK"), "{took:?}: {rest}");
    let _ = running.close().await;
}

#[tokio::test]
async fn a_request_without_end_is_refused() {
    let broker = Memory::private();
    let running = start(app(), &broker).await;
    let endless = format!("GET /acemq-health HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "x".repeat(64 * 1024));
    let mut stream = TcpStream::connect(address(&running)).await.unwrap();
    // The server may hang up before all of it is written.
    let _ = stream.write_all(endless.as_bytes()).await;
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(!answer.contains("200 OK"), "{answer}");
    assert_eq!(get(&running, "/acemq-health").await.code, 200);
    let _ = running.close().await;
}

#[tokio::test]
async fn after_the_close_nobody_listens_and_no_task_is_left() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let broker = Memory::private();
    let running = start(app(), &broker).await;
    let address = address(&running);
    let _open = TcpStream::connect(address).await.unwrap();
    let _ = running.close().await;
    assert!(TcpStream::connect(address).await.is_err());
    while tasks() > before {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_address_that_is_taken_or_none_is_an_error_with_the_remedy_before_anything_is_declared() {
    let broker = Memory::private();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (address, part) in [(address.as_str(), "`ACEMQ_ACTUATOR`"), ("9464", "such as `127.0.0.1:9464`")] {
        let error = app().transport(broker.clone()).actuator(address).start().await.unwrap_err();
        assert!(matches!(error, Error::Actuator { .. }) && error.to_string().contains(part), "{error}");
    }
    assert!(broker.declarations().is_empty());
}

#[tokio::test]
async fn without_an_address_nothing_is_served_and_a_service_mounts_the_routes_itself() {
    let broker = Memory::private();
    let running = app().transport(broker).start().await.unwrap();
    assert_eq!(running.actuator_address(), None);
    let service = axum::Router::new()
        .route("/", axum::routing::get(|| async { "shop" }))
        .merge(acemq::actuator::router(&running))
        .fallback(|| async { (axum::http::StatusCode::NOT_FOUND, "the shop's own") });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, service).await });
    let at = async |path: &str| {
        ask(address, &format!("GET {path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")).await
    };
    assert_eq!((at("/").await.body, at("/else").await.body), ("shop".to_owned(), "the shop's own".to_owned()));
    assert_eq!((at("/acemq-health").await.code, at("/acemq-info").await.code), (200, 200));
    server.abort();
    let _ = running.close().await;
}
