//! Messages as the broker keeps them, and what dying writes on them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::route::Name;
use crate::{
    envelope::{Properties, Table, Value},
    transport::{Incoming, Outgoing},
};

/// A message, shared by the queues that hold it.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) exchange: String,
    pub(super) routing_key: String,
    pub(super) properties: Properties,
    pub(super) body: Bytes,
    copies: Vec<String>,
    blind_copies: Vec<String>,
    /// The latest one first.
    deaths: Vec<Death>,
    first_death: Option<Box<Death>>,
}

/// Why a message left a queue without being acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Expired,
    MaxLength,
    DeliveryLimit,
}

impl Reason {
    const fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::MaxLength => "maxlen",
            Self::DeliveryLimit => "delivery_limit",
        }
    }
}

/// One entry of `x-death`: a queue and a reason, with how often.
#[derive(Debug, Clone)]
struct Death {
    queue: Name,
    reason: Reason,
    count: i64,
    exchange: String,
    routing_keys: Vec<String>,
    /// Seconds since 1970.
    time: u64,
    expiration: Option<String>,
}

impl From<Outgoing> for Message {
    fn from(outgoing: Outgoing) -> Self {
        let mut properties = outgoing.properties;
        let copies = texts(properties.headers.get("CC"));
        // Who got them is not for the receivers.
        let blind_copies = texts(properties.headers.remove("BCC").as_ref());
        Self {
            exchange: outgoing.exchange,
            routing_key: outgoing.routing_key,
            properties,
            body: outgoing.body,
            copies,
            blind_copies,
            deaths: Vec::new(),
            first_death: None,
        }
    }
}

impl Message {
    /// How long the message wants to live at most.
    pub(super) fn lifetime(&self) -> Option<Duration> {
        let digits = self.properties.expiration.as_ref()?;
        digits.parse().ok().map(Duration::from_millis)
    }

    /// The routing key, and those that the sender added.
    pub(super) fn routing_keys(&self) -> impl Iterator<Item = &str> {
        self.shown_keys().chain(self.blind_copies.iter().map(String::as_str))
    }

    fn shown_keys(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.routing_key.as_str()).chain(self.copies.iter().map(String::as_str))
    }

    /// The message as it goes on after a death: under the dead-letter exchange and key, with the death on record and
    /// without a lifetime of its own.
    pub(super) fn buried(
        &self,
        queue: &Name,
        reason: Reason,
        exchange: &str,
        routing_key: Option<&str>,
        time: u64,
    ) -> Self {
        let mut dead = self.clone();
        exchange.clone_into(&mut dead.exchange);
        if let Some(routing_key) = routing_key {
            routing_key.clone_into(&mut dead.routing_key);
            // The header stays, as a record.
            dead.copies.clear();
            dead.blind_copies.clear();
        }
        let expiration = dead.properties.expiration.take();
        let known = dead.deaths.iter().position(|death| death.queue == *queue && death.reason == reason);
        let death = match known {
            Some(at) => {
                let mut death = dead.deaths.remove(at);
                death.count = death.count.saturating_add(1);
                death
            }
            None => Death {
                queue: Arc::clone(queue),
                reason,
                count: 1,
                exchange: self.exchange.clone(),
                routing_keys: self.shown_keys().map(str::to_owned).collect(),
                time,
                expiration,
            },
        };
        if dead.first_death.is_none() {
            dead.first_death = Some(Box::new(death.clone()));
        }
        dead.deaths.insert(0, death);
        dead.write_deaths();
        dead
    }

    /// Whether the broker alone has brought the message back to a queue that it died in: such a circle would never end.
    pub(super) fn circles_to(&self, queue: &str) -> bool {
        self.deaths.iter().any(|death| &*death.queue == queue)
    }

    /// Writes the record over whatever a client sent under the same names, as RabbitMQ 4 does.
    fn write_deaths(&mut self) {
        let entries = self.deaths.iter().map(Death::table).collect();
        let headers = &mut self.properties.headers;
        let mut write = |which: &str, death: &Death| {
            for (what, text) in
                [("queue", &*death.queue), ("reason", death.reason.name()), ("exchange", &death.exchange)]
            {
                headers.insert(format!("x-{which}-death-{what}"), text.into());
            }
        };
        if let (Some(last), Some(first)) = (self.deaths.first(), &self.first_death) {
            write("first", first);
            write("last", last);
        }
        headers.insert("x-death".to_owned(), Value::Array(entries));
    }

    /// The message as a consumer gets it.
    pub(super) fn incoming(&self, tag: u64, redelivered: bool, returns: Option<u64>) -> Incoming {
        let mut properties = self.properties.clone();
        if let Some(returns) = returns.filter(|returns| *returns > 0) {
            let count = i64::try_from(returns).unwrap_or(i64::MAX);
            let name = "x-delivery-count".to_owned();
            properties.headers.insert(name, Value::I64(count));
        }
        Incoming {
            tag,
            exchange: self.exchange.clone(),
            routing_key: self.routing_key.clone(),
            redelivered,
            properties,
            body: self.body.clone(),
        }
    }
}

impl Death {
    fn table(&self) -> Value {
        let keys = self.routing_keys.iter().map(|key| key.as_str().into());
        let mut table = Table::from([
            ("count".to_owned(), Value::I64(self.count)),
            ("reason".to_owned(), self.reason.name().into()),
            ("queue".to_owned(), (&*self.queue).into()),
            ("time".to_owned(), Value::Timestamp(self.time)),
            ("exchange".to_owned(), self.exchange.as_str().into()),
            ("routing-keys".to_owned(), Value::Array(keys.collect())),
        ]);
        if let Some(expiration) = &self.expiration {
            let name = "original-expiration".to_owned();
            table.insert(name, expiration.as_str().into());
        }
        Value::Table(table)
    }
}

/// The texts of an array.
fn texts(array: Option<&Value>) -> Vec<String> {
    let items = match array {
        Some(Value::Array(items)) => items.as_slice(),
        _ => &[],
    };
    items.iter().filter_map(Value::as_text).map(str::to_owned).collect()
}
