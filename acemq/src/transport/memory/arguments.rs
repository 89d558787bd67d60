//! Queue arguments: what they ask for, whether that can be had, and whether two sets ask for the same.

use std::time::Duration;

use crate::{
    envelope::{Table, Value},
    transport::DeclareError,
};

/// The longest time that RabbitMQ counts, ten years, in milliseconds.
const LONGEST: i128 = 315_360_000_000;

/// How many returns a quorum queue suffers when nobody says: RabbitMQ 4.
const DELIVERY_LIMIT: u64 = 20;

/// The order in which RabbitMQ looks for differences, so that of several the same one is named.
const COMPARED: [&str; 8] = [
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-max-length",
    "x-overflow",
    "x-queue-type",
    "x-delivery-limit",
];

/// Which of RabbitMQ's queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Classic,
    Quorum,
}

/// What a full queue does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overflow {
    DropHead,
    RejectPublish,
}

/// What happens to a dead letter that nobody takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    AtMostOnce,
    AtLeastOnce,
}

/// Where the dead go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeadLetter {
    pub(super) exchange: String,
    pub(super) routing_key: Option<String>,
    pub(super) strategy: Strategy,
}

/// The arguments of one queue.
#[derive(Debug, Clone)]
pub(super) struct Arguments {
    pub(super) kind: Kind,
    pub(super) ttl: Option<Duration>,
    pub(super) dead_letter: Option<DeadLetter>,
    pub(super) max_length: Option<usize>,
    pub(super) overflow: Overflow,
    pub(super) delivery_limit: Option<u64>,
    /// As declared.
    pub(super) table: Table,
}

impl Arguments {
    /// Reads the arguments of a queue, with RabbitMQ's words where RabbitMQ refuses too.
    pub(super) fn parse(queue: &str, table: &Table) -> Result<Self, DeclareError> {
        Self::read(queue, table).map_err(|text| DeclareError::Refused { object: format!("queue `{queue}`"), text })
    }

    fn read(queue: &str, table: &Table) -> Result<Self, String> {
        let reader = Reader { queue, table };
        reader.all_known()?;
        let kind = reader.kind()?;
        let ttl = reader.number("x-message-ttl", LONGEST)?;
        let max_length = reader.number("x-max-length", i128::MAX)?;
        let overflow = match reader.text("x-overflow")? {
            None | Some("drop-head") => Overflow::DropHead,
            Some("reject-publish") => Overflow::RejectPublish,
            Some("reject-publish-dlx") => {
                return Err(unsupported("x-overflow: reject-publish-dlx"));
            }
            Some(_) => return Err(reader.invalid("x-overflow", "invalid_overflow")),
        };
        Ok(Self {
            kind,
            ttl: ttl.map(Duration::from_millis),
            dead_letter: reader.dead_letter(kind, overflow)?,
            max_length: max_length.map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
            overflow,
            delivery_limit: reader.delivery_limit(kind)?,
            table: table.clone(),
        })
    }

    /// Compares with what is there, by value: an integer of another width is the same.
    pub(super) fn same_as(&self, queue: &str, existing: &Self) -> Result<(), DeclareError> {
        for name in COMPARED {
            let (there, wanted) = if name == "x-queue-type" {
                (Some(existing.kind_value()), Some(self.kind_value()))
            } else {
                (existing.table.get(name).cloned(), self.table.get(name).cloned())
            };
            let difference = match (there, wanted) {
                (None, None) => continue,
                (Some(there), Some(wanted)) if equal(&there, &wanted) => continue,
                (Some(there), Some(wanted)) => {
                    format!("received '{}' but current is '{}'", text(&wanted), text(&there))
                }
                (Some(there), None) => {
                    format!("received none but current is the value '{}' of type '{}'", text(&there), type_name(&there))
                }
                (None, Some(wanted)) => format!(
                    "received the value '{}' of type '{}' but current is none",
                    text(&wanted),
                    type_name(&wanted)
                ),
            };
            return Err(DeclareError::Mismatch {
                object: format!("queue `{queue}`"),
                text: format!(
                    "PRECONDITION_FAILED - inequivalent arg '{name}' for queue '{queue}' in vhost '/': {difference}"
                ),
            });
        }
        Ok(())
    }

    fn kind_value(&self) -> Value {
        match self.kind {
            Kind::Classic => "classic".into(),
            Kind::Quorum => "quorum".into(),
        }
    }
}

struct Reader<'a> {
    queue: &'a str,
    table: &'a Table,
}

impl<'a> Reader<'a> {
    /// RabbitMQ ignores an argument that it does not know; here one of its own that is not supported must not pass silently.
    fn all_known(&self) -> Result<(), String> {
        let unknown = |name: &&String| name.starts_with("x-") && !COMPARED.contains(&name.as_str());
        match self.table.keys().find(unknown) {
            Some(name) => Err(unsupported(name)),
            None => Ok(()),
        }
    }

    fn invalid(&self, name: &str, why: &str) -> String {
        format!("PRECONDITION_FAILED - invalid arg '{name}' for queue '{}' in vhost '/': {why}", self.queue)
    }

    fn not_for(&self, name: &str, kind: Kind) -> String {
        format!(
            "PRECONDITION_FAILED - invalid arg '{name}' for queue '{}' in vhost '/' of queue type rabbit_{}_queue",
            self.queue,
            match kind {
                Kind::Classic => "classic",
                Kind::Quorum => "quorum",
            }
        )
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.table.get(name) {
            None => Ok(None),
            Some(Value::LongString(bytes)) => {
                std::str::from_utf8(bytes).map(Some).map_err(|_| self.invalid(name, "not UTF-8"))
            }
            Some(Value::ShortString(text)) => Ok(Some(text)),
            Some(other) => {
                let why = format!("{{unacceptable_type,{}}}", type_name(other));
                Err(self.invalid(name, &why))
            }
        }
    }

    fn number(&self, name: &str, most: i128) -> Result<Option<u64>, String> {
        let Some(value) = self.table.get(name) else {
            return Ok(None);
        };
        let Some(number) = integer(value) else {
            let why = format!("\"expected integer, got {}\"", type_name(value));
            return Err(self.invalid(name, &why));
        };
        if number > most {
            return Err(self.invalid(name, &format!("{{value_too_large,{number}}}")));
        }
        u64::try_from(number).map(Some).map_err(|_| self.invalid(name, &format!("{{value_negative,{number}}}")))
    }

    fn kind(&self) -> Result<Kind, String> {
        match self.text("x-queue-type")? {
            None | Some("classic") => Ok(Kind::Classic),
            Some("quorum") => Ok(Kind::Quorum),
            Some("stream") => Err(unsupported("x-queue-type: stream")),
            Some(other) => {
                let why = format!("\"unsupported queue type '{other}'\"");
                Err(self.invalid("x-queue-type", &why))
            }
        }
    }

    fn dead_letter(&self, kind: Kind, overflow: Overflow) -> Result<Option<DeadLetter>, String> {
        let exchange = match self.table.get("x-dead-letter-exchange") {
            Some(value) if value.as_text().is_none() => {
                return Err(format!(
                    "PRECONDITION_FAILED - invalid type '{}' for arg 'x-dead-letter-exchange' in queue '{}' in vhost '/'",
                    type_name(value),
                    self.queue
                ));
            }
            value => value.and_then(Value::as_text),
        };
        let routing_key = self.text("x-dead-letter-routing-key")?;
        let strategy = match self.text("x-dead-letter-strategy")? {
            Some(_) if kind == Kind::Classic => {
                return Err(self.not_for("x-dead-letter-strategy", kind));
            }
            None | Some("at-most-once") => Strategy::AtMostOnce,
            // RabbitMQ accepts it on a queue that drops its head, and then does not keep its word.
            Some("at-least-once") if overflow == Overflow::DropHead => Strategy::AtMostOnce,
            Some("at-least-once") => Strategy::AtLeastOnce,
            Some(_) => {
                return Err(self.invalid("x-dead-letter-strategy", "invalid_dlx_strategy"));
            }
        };
        match exchange {
            Some(exchange) => Ok(Some(DeadLetter {
                exchange: exchange.to_owned(),
                routing_key: routing_key.map(str::to_owned),
                strategy,
            })),
            None if routing_key.is_some() => {
                Err(self.invalid("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined"))
            }
            None => Ok(None),
        }
    }

    fn delivery_limit(&self, kind: Kind) -> Result<Option<u64>, String> {
        let limit = self.table.get("x-delivery-limit");
        let Some(value) = limit else {
            return Ok((kind == Kind::Quorum).then_some(DELIVERY_LIMIT));
        };
        if kind == Kind::Classic {
            return Err(self.not_for("x-delivery-limit", kind));
        }
        let Some(limit) = integer(value) else {
            let why = format!("\"expected integer, got {}\"", type_name(value));
            return Err(self.invalid("x-delivery-limit", &why));
        };
        // A negative one is no limit.
        Ok(u64::try_from(limit).ok())
    }
}

fn unsupported(what: &str) -> String {
    format!("the embedded broker does not support `{what}`; use RabbitMQ for it")
}

fn integer(value: &Value) -> Option<i128> {
    Some(match *value {
        Value::I8(n) => n.into(),
        Value::U8(n) => n.into(),
        Value::I16(n) => n.into(),
        Value::U16(n) => n.into(),
        Value::I32(n) => n.into(),
        Value::U32(n) => n.into(),
        Value::I64(n) => n.into(),
        _ => return None,
    })
}

fn equal(a: &Value, b: &Value) -> bool {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn text(value: &Value) -> String {
    match (integer(value), value.as_text()) {
        (Some(number), _) => number.to_string(),
        (None, Some(text)) => text.to_owned(),
        (None, None) => format!("{value:?}"),
    }
}

/// The name that RabbitMQ gives to the type of a value.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::I8(_) => "byte",
        Value::U8(_) => "unsignedbyte",
        Value::I16(_) => "short",
        Value::U16(_) => "unsignedshort",
        Value::I32(_) => "signedint",
        Value::U32(_) => "unsignedint",
        Value::I64(_) => "long",
        Value::F32(_) => "float",
        Value::F64(_) => "double",
        Value::Decimal { .. } => "decimal",
        Value::LongString(_) | Value::ShortString(_) => "longstr",
        Value::Array(_) => "array",
        Value::Timestamp(_) => "timestamp",
        Value::Table(_) => "table",
        Value::Bytes(_) => "binary",
        Value::Void => "void",
    }
}
