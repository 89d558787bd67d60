//! The consumers of the cases; their scripts come with the application's state.

use acemq::{Ack, Context, Raw, State, consumer};

use super::scene::Script;

#[consumer(queue = "short", declare = quorum, retry = fixed(3, "1s"))]
pub(crate) async fn short(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "long", declare = quorum, retry = fixed(4, "1m"))]
pub(crate) async fn long(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "long.too", declare = quorum, retry = fixed(4, "1m"))]
pub(crate) async fn long_too(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

/// Expects its queue, and its retries wait in a rung.
#[consumer(queue = "theirs.long", retry = fixed(4, "1m"))]
pub(crate) async fn theirs_long(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "narrow", declare = quorum, prefetch = 3, concurrency = 1, retry = fixed(3, "20s"))]
pub(crate) async fn narrow(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "once", declare = quorum, retry = none)]
pub(crate) async fn once(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "plain", declare = classic, retry = fixed(3, "1s"))]
pub(crate) async fn plain(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "endless", declare = quorum)]
pub(crate) async fn endless(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "claimed", declare = quorum, retry = fixed(3, "1s"), idempotent)]
pub(crate) async fn claimed(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

/// Expects its queue and does not declare it.
#[consumer(queue = "theirs")]
pub(crate) async fn theirs(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

// Each test on a shared node has a queue of its own.

#[consumer(queue = "held", declare = quorum)]
pub(crate) async fn held(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "copied", declare = quorum, retry = fixed(3, "100ms"))]
pub(crate) async fn copied(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "framed", declare = classic, retry = none)]
pub(crate) async fn framed(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "alarmed", declare = quorum, retry = none)]
pub(crate) async fn alarmed(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "forbidden", declare = quorum, retry = none)]
pub(crate) async fn forbidden(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}

#[consumer(queue = "flooded", prefetch = 20)]
pub(crate) async fn flooded(raw: Raw, State(script): State<Script>, context: Context) -> Result<Ack, String> {
    script.run(&raw.0, context).await
}
