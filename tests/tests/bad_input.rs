//! Mistakes of an operator or a developer: each is met at the start, with an error that names the thing and the remedy.

use std::time::{Duration, Instant};

use acemq::{App, Raw, State, consumer, registry::RungKind};
use acemq_tests::{
    amqp::{self, Client},
    on_each_rabbitmq,
    rabbitmq::{Node, vhost},
    wait::{unique, within},
};
use lapin::types::FieldTable;

#[consumer(queue = "not.there")]
async fn undeclared(_: Raw) {}

#[consumer(queue = "shared", declare = quorum)]
async fn first(_: Raw) {}

#[consumer(queue = "shared", declare = quorum, retry = none)]
async fn second(_: Raw) {}

#[consumer(queue = "with.rung", declare = quorum, retry = fixed(3, "30s"))]
async fn with_rung(_: Raw) {}

#[derive(Clone)]
struct Database;

#[consumer(queue = "stateful", declare = quorum)]
async fn stateful(_: Raw, State(_database): State<Database>) {}

/// A start that fails in time; the text of the error.
async fn refused(app: App) -> String {
    let started = Instant::now();
    let error = within(Duration::from_secs(15), "a failing start", app.start()).await.unwrap_err();
    let text = format!("{error}\n{error:?}");
    assert!(!text.contains("s3cret"), "credentials in: {text}");
    assert!(started.elapsed() < Duration::from_secs(15));
    text
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_named() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("amqp://someone:s3cret@127.0.0.1:{port}");
    let text = refused(App::new().url(url).consumer::<first>()).await;
    has(&text, &["no broker answers at", &port.to_string()]);
}

#[tokio::test]
async fn a_url_of_another_kind_is_refused_with_what_is_understood() {
    for url in ["http://someone:s3cret@localhost", "localhost:5672", "amqp://someone:s3cret@localhost:70000", ""] {
        let text = refused(App::new().url(url).consumer::<first>()).await;
        has(&text, &["URL"]);
    }
}

#[tokio::test]
async fn two_consumers_of_a_queue_and_missing_state_are_reported_at_once() {
    let app = App::new().url("memory://bad-input").consumer::<first>().consumer::<second>().consumer::<stateful>();
    let text = refused(app).await;
    has(
        &text,
        &["2 problems", "queue `shared` has 2 consumers", "bad_input.rs:", "State<bad_input::Database>", "App::state"],
    );
}

#[tokio::test]
async fn a_missing_queue_is_named_on_the_embedded_broker_too() {
    let text = refused(App::new().url("memory://bad-input-2").consumer::<undeclared>()).await;
    has(&text, &["queue `not.there` does not exist", "`declare = quorum`", "undeclared"]);
}

#[test]
fn outside_a_runtime_the_error_says_what_to_do() {
    let mut start = Box::pin(App::new().url("memory://x").consumer::<first>().start());
    let waker = std::task::Waker::noop();
    let std::task::Poll::Ready(result) = start.as_mut().poll(&mut std::task::Context::from_waker(waker)) else {
        panic!("it waits without a runtime");
    };
    has(&result.unwrap_err().to_string(), &["#[tokio::main]"]);
}

on_each_rabbitmq! {
    async fn a_wrong_password_names_the_user_and_not_the_password(node: &'static Node) {
        let text = refused(App::new().url(node.url_for("guest", "s3cret", "/")).consumer::<first>()).await;
        has(&text, &["user `guest`", "password", &node.port().to_string()]);
    }

    async fn a_missing_vhost_is_named(node: &'static Node) {
        let text = refused(App::new().url(node.url_for("guest", "guest", "nowhere")).consumer::<first>()).await;
        has(&text, &["virtual host `nowhere`"]);
    }

    async fn a_missing_queue_is_named_with_what_to_write(node: &'static Node) {
        let vhost = vhost(node).await;
        let text = refused(App::new().url(node.url_for("guest", "guest", &vhost)).consumer::<undeclared>()).await;
        has(&text, &["queue `not.there` does not exist", "`declare = quorum`", "undeclared"]);
    }

    async fn a_queue_with_other_arguments_is_told_apart_by_argument(node: &'static Node) {
        let vhost = vhost(node).await;
        let url = node.url_for("guest", "guest", &vhost);
        Client::connect(&url).await.declare("shared", FieldTable::default()).await;
        let text = refused(App::new().url(url).consumer::<first>()).await;
        has(&text, &["queue `shared`", "argument `x-", "there and", "here"]);
    }

    async fn a_rung_of_the_other_kind_names_both_kinds(node: &'static Node) {
        let vhost = vhost(node).await;
        let url = node.url_for("guest", "guest", &vhost);
        let app = || App::new().url(&url).consumer::<with_rung>();
        let _ = app().rungs(RungKind::Classic).start().await.unwrap().close().await;
        let text = refused(app()).await;
        has(&text, &["queue `with.rung.retry.30s`", "argument `x-", "`rungs = quorum`", "`rungs = classic`"]);
    }

    async fn a_dead_letter_queue_with_arguments_names_them(node: &'static Node) {
        let vhost = vhost(node).await;
        let url = node.url_for("guest", "guest", &vhost);
        let limit = amqp::table([("x-max-length", lapin::types::AMQPValue::LongInt(5))]);
        Client::connect(&url).await.declare("shared.dlq", limit).await;
        let text = refused(App::new().url(url).consumer::<first>()).await;
        has(&text, &["queue `shared.dlq`", "argument `x-max-length` is", "no arguments in any library"]);
    }

    async fn a_user_without_permissions_is_told_which(node: &'static Node) {
        let vhost = vhost(node).await;
        let user = unique("reader");
        node.add_user(&user, "s3cret", &vhost, ["^$", "^$", ".*"]).await;
        let text = refused(App::new().url(node.url_for(&user, "s3cret", &vhost)).consumer::<first>()).await;
        has(&text, &["the user may not use queue `shared`", "`configure`", "^(shared|acemq.dlx|acemq.retry).*"]);
    }
}
