//! What a node says about its queues, bindings and exchanges.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A queue as the node lists it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// `classic`, `quorum` or `stream`.
    #[serde(rename = "type", deserialize_with = "kind")]
    pub kind: String,
    /// Whether it outlives the broker.
    pub durable: bool,
    /// Messages in it, ready or unacked.
    #[serde(deserialize_with = "count")]
    pub messages: u64,
    /// Messages that wait for a consumer.
    #[serde(rename = "messages_ready", deserialize_with = "count")]
    pub ready: u64,
    /// Messages that were delivered and not acknowledged yet.
    #[serde(rename = "messages_unacknowledged", deserialize_with = "count")]
    pub unacked: u64,
    /// Consumers subscribed to it.
    #[serde(deserialize_with = "count")]
    pub consumers: u64,
    /// The arguments that it was declared with.
    #[serde(deserialize_with = "arguments")]
    pub arguments: BTreeMap<String, Value>,
}

/// A binding as the node lists it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Binding {
    /// The exchange; empty for the default exchange.
    #[serde(rename = "source_name")]
    pub exchange: String,
    /// The queue or exchange that it leads to.
    #[serde(rename = "destination_name")]
    pub destination: String,
    /// The routing key.
    #[serde(rename = "routing_key")]
    pub key: String,
}

/// An exchange as the node lists it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Exchange {
    /// Its name; empty for the default exchange.
    pub name: String,
    /// `direct`, `fanout`, `topic` or `headers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it outlives the broker.
    pub durable: bool,
}

/// The columns of [`Queue`].
pub(super) const QUEUE: [&str; 8] =
    ["name", "type", "durable", "messages", "messages_ready", "messages_unacknowledged", "consumers", "arguments"];
/// The columns of [`Binding`].
pub(super) const BINDING: [&str; 3] = ["source_name", "destination_name", "routing_key"];
/// The columns of [`Exchange`].
pub(super) const EXCHANGE: [&str; 3] = ["name", "type", "durable"];

/// A queue that is starting or down shows an empty string where a number belongs.
fn count<'de, D: serde::Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    Ok(Value::deserialize(input)?.as_u64().unwrap_or(0))
}

/// Older nodes show the module that implements the type.
fn kind<'de, D: serde::Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let kind = String::deserialize(input)?;
    Ok(kind.trim_start_matches("rabbit_").trim_end_matches("_queue").to_owned())
}

/// Arguments come as an object, as a list of `[name, type, value]`, or as an empty list.
fn arguments<'de, D: serde::Deserializer<'de>>(input: D) -> Result<BTreeMap<String, Value>, D::Error> {
    let entry = |entry: Value| match entry {
        Value::Array(parts) => {
            let name = parts.first()?.as_str()?.to_owned();
            Some((name, parts.last()?.clone()))
        }
        _ => None,
    };
    Ok(match Value::deserialize(input)? {
        Value::Object(map) => map.into_iter().collect(),
        Value::Array(list) => list.into_iter().filter_map(entry).collect(),
        _ => BTreeMap::new(),
    })
}
