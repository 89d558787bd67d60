//! Declarations and checks.

use std::sync::Arc;

use super::{
    arguments::Arguments,
    broker::State,
    queue::Queue,
    route::{Exchange, Name},
};
use crate::{
    envelope::Table,
    topology::{Declaration, ExchangeKind},
    transport::DeclareError,
};

/// What an AMQP short string holds.
const LONGEST_NAME: usize = 255;

impl State {
    pub(super) fn declare(&mut self, wanted: &Declaration) -> Result<(), DeclareError> {
        match wanted {
            Declaration::Exchange { name, kind } => self.declare_exchange(name, *kind),
            Declaration::Queue { name, arguments } => self.declare_queue(name, arguments),
            Declaration::Binding { queue, exchange, routing_key } => self.bind(wanted, queue, exchange, routing_key),
            Declaration::QueueExists { name } => self.find_queue(name).map(drop),
        }
    }

    fn declare_exchange(&mut self, name: &str, kind: ExchangeKind) -> Result<(), DeclareError> {
        let object = format!("exchange `{name}`");
        if name.is_empty() {
            return Err(default_exchange(object));
        }
        check_length(&object, name)?;
        match self.exchanges.get(name) {
            Some(existing) if existing.kind == kind => Ok(()),
            Some(existing) => Err(DeclareError::Mismatch {
                object,
                text: format!(
                    "PRECONDITION_FAILED - inequivalent arg 'type' for exchange '{name}' in vhost '/': received '{}' but current is '{}'",
                    kind_name(kind),
                    kind_name(existing.kind)
                ),
            }),
            None => {
                check_reserved(object, "exchange", name)?;
                self.exchanges.insert(name.to_owned(), Exchange::new(kind));
                Ok(())
            }
        }
    }

    fn declare_queue(&mut self, name: &str, table: &Table) -> Result<(), DeclareError> {
        let object = format!("queue `{name}`");
        if name.is_empty() {
            let text = "a queue without a name would get one from the broker; name it".to_owned();
            return Err(DeclareError::Refused { object, text });
        }
        check_length(&object, name)?;
        let arguments = Arguments::parse(name, table)?;
        if let Some(existing) = self.queues.get(name) {
            return arguments.same_as(name, &existing.arguments);
        }
        check_reserved(object, "queue", name)?;
        let name = Name::from(name);
        let queue = Queue::new(Arc::clone(&name), arguments);
        self.queues.insert(name, queue);
        Ok(())
    }

    fn bind(&mut self, wanted: &Declaration, queue: &str, exchange: &str, key: &str) -> Result<(), DeclareError> {
        if exchange.is_empty() {
            return Err(default_exchange(object(wanted)));
        }
        check_length(&object(wanted), key)?;
        if !self.exchanges.contains_key(exchange) {
            let object = format!("exchange `{exchange}`");
            return Err(DeclareError::Missing { object });
        }
        let queue = self.find_queue(queue)?;
        if let Some(exchange) = self.exchanges.get_mut(exchange) {
            exchange.bind(key, &queue);
        }
        Ok(())
    }

    fn find_queue(&self, name: &str) -> Result<Name, DeclareError> {
        match self.queues.get_key_value(name) {
            Some((name, _)) => Ok(Arc::clone(name)),
            None => Err(DeclareError::Missing { object: format!("queue `{name}`") }),
        }
    }

    /// Everything that was declared, sorted: exchanges, queues, bindings.
    pub(super) fn declarations(&self) -> Vec<Declaration> {
        let own = |name: &&String| !name.starts_with("amq.");
        let exchanges = self.exchanges.keys().filter(own).filter_map(|name| {
            let kind = self.exchanges.get(name)?.kind;
            let name = name.clone();
            Some(Declaration::Exchange { name, kind })
        });
        let mut queues: Vec<_> = self.queues.iter().collect();
        queues.sort_unstable_by_key(|(name, _)| Arc::clone(name));
        let queues = queues.into_iter().map(|(name, queue)| Declaration::Queue {
            name: name.to_string(),
            arguments: queue.arguments.table.clone(),
        });
        let mut bindings: Vec<_> = self
            .exchanges
            .iter()
            .flat_map(|(name, exchange)| {
                let named = move |(key, queue)| (name.as_str(), key, queue);
                exchange.bindings().map(named)
            })
            .collect();
        bindings.sort_unstable();
        let bindings = bindings.into_iter().map(|(exchange, key, queue)| Declaration::Binding {
            queue: queue.to_string(),
            exchange: exchange.to_owned(),
            routing_key: key.to_owned(),
        });
        exchanges.chain(queues).chain(bindings).collect()
    }
}

/// What a declaration is about, in words.
pub(super) fn object(wanted: &Declaration) -> String {
    match wanted {
        Declaration::Exchange { name, .. } => format!("exchange `{name}`"),
        Declaration::Queue { name, .. } | Declaration::QueueExists { name } => format!("queue `{name}`"),
        Declaration::Binding { queue, exchange, routing_key } => {
            format!("binding of queue `{queue}` to exchange `{exchange}` on `{routing_key}`")
        }
    }
}

fn default_exchange(object: String) -> DeclareError {
    let text = "ACCESS_REFUSED - operation not permitted on the default exchange".to_owned();
    DeclareError::Denied { object, text }
}

fn check_reserved(object: String, what: &str, name: &str) -> Result<(), DeclareError> {
    if name.starts_with("amq.") {
        let text = format!("ACCESS_REFUSED - {what} name '{name}' contains reserved prefix 'amq.*'");
        return Err(DeclareError::Denied { object, text });
    }
    Ok(())
}

fn check_length(object: &str, text: &str) -> Result<(), DeclareError> {
    if text.len() > LONGEST_NAME {
        return Err(DeclareError::Refused {
            object: object.to_owned(),
            text: format!("{} bytes are over the {LONGEST_NAME} of AMQP", text.len()),
        });
    }
    Ok(())
}

fn kind_name(kind: ExchangeKind) -> &'static str {
    match kind {
        ExchangeKind::Direct => "direct",
        ExchangeKind::Fanout => "fanout",
        ExchangeKind::Topic => "topic",
    }
}
