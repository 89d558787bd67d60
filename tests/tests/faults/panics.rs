//! Code of the user that panics: a failed attempt, and nothing more.

use std::fmt;

use acemq::{
    Ack, App, Context, ExtractError, FromContext, Raw, State, consumer,
    envelope::{Properties, Table, Value},
};

use super::scene::{LATEST, Scene, attempt, put, text};

/// Where it panics, by the first word of the body.
struct Bomb(&'static str);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::panic::resume_unwind(Box::new(self.0.to_owned()));
        }
    }
}

#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::panic::resume_unwind(Box::new("an error that cannot be shown".to_owned()))
    }
}

impl std::error::Error for Unspeakable {}

struct Extracted;

impl FromContext for Extracted {
    async fn from_context(context: &Context) -> Result<Self, ExtractError> {
        if context.body().starts_with(b"extractor") {
            std::panic::resume_unwind(Box::new("an extractor panics".to_owned()));
        }
        Ok(Self)
    }
}

/// A value of the application whose clone panics on demand.
#[derive(Debug, Default)]
struct Fragile(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        if self.0.load(std::sync::atomic::Ordering::SeqCst) {
            std::panic::resume_unwind(Box::new("a clone panics".to_owned()));
        }
        Self(std::sync::Arc::clone(&self.0))
    }
}

#[consumer(queue = "bombs", declare = quorum, retry = fixed(2, "1s"), timeout = "10s")]
async fn bombs(raw: Raw, _extracted: Extracted, State(_fragile): State<Fragile>) -> Result<Ack, Unspeakable> {
    match &*raw.0 {
        b"handler" => std::panic::resume_unwind(Box::new("the handler panics".to_owned())),
        b"text" => std::panic::resume_unwind(Box::new("a static text")),
        b"number" => std::panic::resume_unwind(Box::new(7_u32)),
        // Its payload panics once more when it is dropped.
        b"payload" => std::panic::resume_unwind(Box::new(Bomb("the payload panics"))),
        b"display" => Err(Unspeakable),
        b"drop" => {
            let _bomb = Bomb("a value panics when it is dropped");
            Ok(Ack::accept())
        }
        b"spawned" => match tokio::spawn(async { std::panic::resume_unwind(Box::new("a child")) }).await {
            Ok(()) => Ok(Ack::accept()),
            Err(_) => Ok(Ack::retry("the task of a child panicked")),
        },
        // The future is dropped by the time-out, and the value with it.
        b"timeout" => {
            let _bomb = Bomb("a value panics when its future is dropped");
            std::future::pending::<()>().await;
            Ok(Ack::accept())
        }
        _ => Ok(Ack::accept()),
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_anywhere_in_the_users_code_is_a_failed_attempt_and_the_consumer_goes_on() {
    let scene = Scene::start(App::new().state(Fragile::default()).consumer::<bombs>()).await;
    for (body, reason) in [
        ("handler", "the handler panics"),
        ("text", "a static text"),
        ("number", "a panic without a text"),
        ("payload", "a panic without a text"),
        ("display", "an error that cannot be shown"),
        ("drop", "a value panics when it is dropped"),
        ("spawned", "the task of a child panicked"),
        ("timeout", "a value panics when its future is dropped"),
        ("extractor", "an extractor panics"),
    ] {
        scene.put("bombs", body);
        let dead = scene.lying("bombs.dlq", 1).await;
        let _ = scene.broker.take("bombs.dlq");
        let told = text(&dead[0], "x-acemq-error").unwrap();
        assert!(told.contains(reason), "{body}: {told}");
        assert_eq!(attempt(&dead[0]), Some(2), "{body}");
        scene.empty("bombs").await;
    }
    scene.running.settled().await;
    let totals = scene.running.totals();
    assert_eq!((totals.retried, totals.dead_lettered, totals.lost), (9, 9, 0));
}

#[tokio::test(start_paused = true)]
async fn a_state_whose_clone_panics_is_a_failed_attempt() {
    let fragile = Fragile::default();
    let scene = Scene::start(App::new().state(fragile.clone()).consumer::<bombs>()).await;
    fragile.0.store(true, std::sync::atomic::Ordering::SeqCst);
    scene.put("bombs", "fine");
    let dead = scene.lying("bombs.dlq", 1).await;
    assert!(text(&dead[0], "x-acemq-error").unwrap().contains("a clone panics"));
}

#[derive(Debug, serde::Deserialize)]
struct Keyed {
    key: String,
}

fn key(keyed: &Keyed) -> String {
    if keyed.key == "bomb" {
        std::panic::resume_unwind(Box::new("a key panics".to_owned()));
    }
    keyed.key.clone()
}

#[consumer(queue = "keyed", declare = quorum, retry = fixed(2, "1s"), idempotent(key = key))]
async fn keyed(_: Keyed) {}

#[tokio::test(start_paused = true)]
async fn a_key_that_panics_parks_its_message_and_keeps_no_other() {
    let scene = Scene::start(App::new().consumer::<keyed>()).await;
    let json = || Properties {
        content_type: Some("application/json".to_owned()),
        headers: Table::from([("note".to_owned(), Value::from("kept"))]),
        ..Properties::default()
    };
    put(&scene.broker, "keyed", r#"{"key":"bomb"}"#, json());
    put(&scene.broker, "keyed", r#"{"key":"fine"}"#, json());
    let parked = scene.lying("keyed.parked", 1).await;
    assert!(text(&parked[0], "x-acemq-error").unwrap().contains("a key panics"), "{parked:?}");
    scene.empty("keyed").await;
    tokio::time::timeout(LATEST, scene.running.settled()).await.unwrap();
    assert_eq!(scene.running.totals().acked, 1);
}
