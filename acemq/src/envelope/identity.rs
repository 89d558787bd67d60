//! The envelope: what a message is, apart from its body.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{
    headers::{self, Number},
    properties::Properties,
    value::{Table, Value},
};

/// The identity of a message and its place in a flow; immutable, and the same over every retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    id: Option<String>,
    kind: String,
    version: u32,
    correlation: Option<String>,
    causation: Option<String>,
    attempt: u32,
    first_seen: Option<u64>,
    origin: Option<String>,
    error: Option<String>,
    claim: Option<String>,
    route: Option<Route>,
}

/// The place of a message in a declared route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The declared route.
    pub name: String,
    /// The position in it, from 0.
    pub position: u32,
    /// The id of the flow.
    pub id: Option<String>,
}

/// Why an envelope cannot be built or be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// An attempt that no library writes: counting on from it would lose count.
    #[error("header `x-acemq-attempt` holds {found}, which is no count of deliveries")]
    Attempt {
        /// What it holds.
        found: String,
    },
    /// A version below 1.
    #[error("a version is at least 1")]
    Version,
    /// An empty type.
    #[error("a message type is not empty")]
    Kind,
}

impl Envelope {
    /// An envelope for a new message of this type: a random id, version 1, attempt 1, first seen now.
    #[must_use]
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            id: Some(uuid::Uuid::new_v4().to_string()),
            kind: kind.into(),
            version: 1,
            correlation: None,
            causation: None,
            attempt: 1,
            first_seen: Some(now_ms()),
            origin: None,
            error: None,
            claim: None,
            route: None,
        }
    }

    /// An envelope for a message that this one caused: a new id, the same correlation, attempt 1.
    #[must_use]
    pub fn causing(&self, kind: impl Into<String>) -> Self {
        Self {
            correlation: self.correlation().map(str::to_owned),
            causation: self.id.clone(),
            origin: self.origin.clone(),
            ..Self::new(kind)
        }
    }

    /// The same envelope, one delivery later.
    #[must_use]
    pub fn next_attempt(&self) -> Self {
        Self { attempt: self.attempt.saturating_add(1), ..self.clone() }
    }

    /// Gives the message this schema version.
    ///
    /// # Errors
    /// When the version is below 1.
    pub fn with_version(mut self, version: u32) -> Result<Self, EnvelopeError> {
        if version < 1 {
            return Err(EnvelopeError::Version);
        }
        self.version = version;
        Ok(self)
    }

    /// Gives the message this id, such as one that a repeated publish must share; an empty one is ignored.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        if !id.is_empty() {
            self.id = Some(id);
        }
        self
    }

    /// Gives the message this correlation id; an empty one is ignored.
    #[must_use]
    pub fn with_correlation(mut self, correlation: impl Into<String>) -> Self {
        self.correlation = Some(correlation.into()).filter(|text| !text.is_empty());
        self
    }

    /// Names the publishing process, by convention `service@host`; an empty one is ignored.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into()).filter(|text| !text.is_empty());
        self
    }

    /// Sets the application's own claim header; an empty one is ignored.
    #[must_use]
    pub fn with_claim(mut self, claim: impl Into<String>) -> Self {
        self.claim = Some(claim.into()).filter(|text| !text.is_empty());
        self
    }

    /// The id; a foreign message may have none.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The logical type; of a foreign message, its routing key.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The schema version, from 1.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The correlation id, which is the id unless somebody set another.
    #[must_use]
    pub fn correlation(&self) -> Option<&str> {
        self.correlation.as_deref().or(self.id.as_deref())
    }

    /// The id of the message that caused this one.
    #[must_use]
    pub fn causation(&self) -> Option<&str> {
        self.causation.as_deref()
    }

    /// The number of this delivery as the policy counts, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When the message was first published.
    #[must_use]
    pub fn first_seen(&self) -> Option<SystemTime> {
        self.first_seen.and_then(|milliseconds| UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)))
    }

    /// How long ago the message was first published; `None` when nobody knows, zero when it lies in the future.
    #[must_use]
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        self.first_seen().map(|first| now.duration_since(first).unwrap_or_default())
    }

    /// The publishing process.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// Why the message was set aside.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// The application's own claim header.
    #[must_use]
    pub fn claim(&self) -> Option<&str> {
        self.claim.as_deref()
    }

    /// The place in a declared route.
    #[must_use]
    pub fn route(&self) -> Option<&Route> {
        self.route.as_ref()
    }

    /// Reads the envelope of a message, whoever published it.
    ///
    /// Nothing malformed stops a delivery, except an attempt that would make the count start again.
    ///
    /// # Errors
    /// When the attempt is negative or too large to be a count.
    pub fn read(properties: &Properties, routing_key: &str) -> Result<Self, EnvelopeError> {
        let table = &properties.headers;
        Ok(Self {
            id: text(table, headers::ID).or_else(|| properties.message_id.clone().filter(|id| !id.is_empty())),
            kind: text(table, headers::TYPE).unwrap_or_else(|| routing_key.to_owned()),
            version: small(table, headers::VERSION).filter(|version| *version >= 1).unwrap_or(1),
            correlation: text(table, headers::CORRELATION),
            causation: text(table, headers::CAUSATION),
            attempt: attempt(table)?,
            first_seen: whole(table, headers::FIRST_SEEN).and_then(|number| u64::try_from(number).ok()),
            origin: text(table, headers::ORIGIN),
            error: text(table, headers::ERROR),
            claim: text(table, headers::CLAIM),
            route: text(table, headers::ROUTE).map(|name| Route {
                name,
                position: small(table, headers::ROUTE_POSITION).unwrap_or(0),
                id: text(table, headers::ROUTE_ID),
            }),
        })
    }

    /// Writes the envelope into the properties of a publish: only what is there, and nothing empty.
    pub fn write(&self, properties: &mut Properties) {
        properties.message_id.clone_from(&self.id);
        let table = &mut properties.headers;
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                table.insert(name.to_owned(), value);
            }
        };
        let string = |text: Option<&str>| text.map(Value::from);
        put(headers::ID, string(self.id()));
        put(headers::TYPE, Some(Value::from(self.kind.as_str())));
        put(headers::VERSION, Some(count(self.version)));
        put(headers::CORRELATION, string(self.correlation()));
        put(headers::CAUSATION, string(self.causation()));
        put(headers::ATTEMPT, Some(count(self.attempt)));
        put(headers::FIRST_SEEN, self.first_seen.and_then(|ms| i64::try_from(ms).ok()).map(Value::I64));
        put(headers::ORIGIN, string(self.origin()));
        put(headers::ERROR, string(self.error()));
        put(headers::CLAIM, string(self.claim()));
        if let Some(route) = &self.route {
            put(headers::ROUTE, Some(Value::from(route.name.as_str())));
            put(headers::ROUTE_POSITION, Some(count(route.position)));
            put(headers::ROUTE_ID, string(route.id.as_deref()));
        }
    }
}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (attempt {})", self.kind, self.id().unwrap_or("without id"), self.attempt)
    }
}

/// Milliseconds since 1970, now; zero on a clock before 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, crate::policy::millis)
}

/// A count as it is written: 32 bits, saturating.
pub(crate) fn count(number: u32) -> Value {
    Value::I32(i32::try_from(number).unwrap_or(i32::MAX))
}

fn text(table: &Table, name: &str) -> Option<String> {
    table.get(name).and_then(Value::as_text).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn whole(table: &Table, name: &str) -> Option<i64> {
    match headers::number(table.get(name)?) {
        Number::Whole(number) => Some(number),
        Number::Overflow | Number::Malformed => None,
    }
}

fn small(table: &Table, name: &str) -> Option<u32> {
    whole(table, name).and_then(|number| u32::try_from(number).ok())
}

fn attempt(table: &Table) -> Result<u32, EnvelopeError> {
    let Some(value) = table.get(headers::ATTEMPT) else {
        return Ok(1);
    };
    match headers::number(value) {
        Number::Malformed | Number::Whole(0) => Ok(1),
        Number::Overflow => Err(EnvelopeError::Attempt { found: "a number past 64 bits".to_owned() }),
        Number::Whole(number) => u32::try_from(number)
            .ok()
            // It is written as 32 signed bits, and has to be able to advance.
            .filter(|attempt| *attempt < i32::MAX.unsigned_abs())
            .ok_or_else(|| EnvelopeError::Attempt { found: number.to_string() }),
    }
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
