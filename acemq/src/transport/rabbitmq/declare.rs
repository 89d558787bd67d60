//! Declarations and checks, each on a channel of its own.

use std::sync::Arc;

use lapin::{
    Channel, ExchangeKind as LapinExchange,
    options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::FieldTable,
};

use super::{
    broker,
    convert::{self, TooLong},
    fault::{Fault, Scope},
    open,
    shared::Shared,
};
use crate::{
    topology::{Declaration, ExchangeKind},
    transport::DeclareError,
};

/// What a declaration is about, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object(String);

impl Object {
    pub(super) fn queue(name: &str) -> Self {
        Self(format!("queue `{name}`"))
    }

    fn exchange(name: &str) -> Self {
        Self(format!("exchange `{name}`"))
    }

    pub(super) fn of(wanted: &Declaration) -> Self {
        match wanted {
            Declaration::Exchange { name, .. } => Self::exchange(name),
            Declaration::Queue { name, .. } | Declaration::QueueExists { name } => Self::queue(name),
            Declaration::Binding { queue, exchange, routing_key } => {
                Self(format!("binding of queue `{queue}` to exchange `{exchange}` on `{routing_key}`"))
            }
        }
    }

    /// A name that AMQP has no room for.
    pub(super) fn unfit(&self, error: &TooLong) -> DeclareError {
        DeclareError::Refused { object: self.0.clone(), text: error.to_string() }
    }

    /// The broker's answer, sorted.
    pub(super) fn error(&self, fault: Fault) -> DeclareError {
        let object = self.0.clone();
        let Fault { scope, code, text } = fault;
        match (scope, code) {
            // The code is also that of a queue whose node is down; then the text is the news.
            (Scope::Channel, Some(404)) if text.contains(" - no ") => DeclareError::Missing { object },
            // The code is also that of an argument that no queue can have.
            (Scope::Channel, Some(406)) if text.contains("inequivalent arg") => DeclareError::Mismatch { object, text },
            (Scope::Channel, Some(403)) => DeclareError::Denied { object, text },
            (Scope::Channel, Some(_)) => DeclareError::Refused { object, text },
            _ => DeclareError::Lost { object, why: text },
        }
    }
}

impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Declares or checks. Runs on the background runtime.
///
/// A refusal costs a channel id of the connection for good, and a check that somebody repeats for days would use them all
/// up. So after some refusals, further declarations use a connection of their own that is closed again: slow, but only
/// where something is wrong for long.
pub(super) async fn declare(shared: Arc<Shared>, wanted: Declaration) -> Result<(), DeclareError> {
    let object = Object::of(&wanted);
    if let Some(text) = broker::lacks(&shared.greeting, &wanted) {
        return Err(DeclareError::Refused { object: object.to_string(), text });
    }
    if shared.spares_channels() {
        return apart(&shared, &wanted).await;
    }
    let channel = shared.channel().await.map_err(|fault| object.error(fault))?;
    let answer = ask(&shared, &channel, &wanted).await?;
    match answer {
        Ok(()) => {
            shared.close_channel(&channel).await;
            Ok(())
        }
        Err(fault) => {
            refused(&shared, &channel, &fault).await;
            Err(error(&wanted, fault))
        }
    }
}

/// Declares on a connection that lives for this declaration.
async fn apart(shared: &Arc<Shared>, wanted: &Declaration) -> Result<(), DeclareError> {
    let object = Object::of(wanted);
    let settings = shared.settings();
    let name = format!("{} (declarations)", settings.connection_name);
    let opened = open::open(&shared.target, settings, &name)
        .await
        .map_err(|error| object.error(Fault::connection(error.to_string())))?;
    let other = Shared::new(Arc::clone(&shared.ground), shared.target.clone(), opened);
    let result = match other.channel().await {
        Ok(channel) => match ask(&other, &channel, wanted).await {
            Ok(answer) => answer.map_err(|fault| error(wanted, fault)),
            Err(unfit) => Err(unfit),
        },
        Err(fault) => Err(object.error(fault)),
    };
    other.shut().await;
    result
}

/// Asks the broker. The outer error is a name that cannot be asked for.
async fn ask(shared: &Shared, channel: &Channel, wanted: &Declaration) -> Result<Result<(), Fault>, DeclareError> {
    let object = Object::of(wanted);
    let name = |text: &str, what| convert::short(text, what).map_err(|error| object.unfit(&error));
    Ok(match wanted {
        Declaration::Exchange { name: exchange, kind } => {
            let kind = match kind {
                ExchangeKind::Direct => LapinExchange::Direct,
                ExchangeKind::Fanout => LapinExchange::Fanout,
                ExchangeKind::Topic => LapinExchange::Topic,
            };
            let options = ExchangeDeclareOptions { durable: true, ..Default::default() };
            let exchange = name(exchange, "exchange name")?;
            let question = channel.exchange_declare(exchange, kind, options, FieldTable::default());
            shared.answer(question).await
        }
        Declaration::Queue { name: queue, arguments } => {
            let arguments = convert::table_to(arguments).map_err(|error| object.unfit(&error))?;
            let options = QueueDeclareOptions { durable: true, ..Default::default() };
            let queue = name(queue, "queue name")?;
            shared.answer(channel.queue_declare(queue, options, arguments)).await.map(drop)
        }
        Declaration::Binding { queue, exchange, routing_key } => {
            let queue = name(queue, "queue name")?;
            let exchange = name(exchange, "exchange name")?;
            let key = name(routing_key, "routing key")?;
            let options = QueueBindOptions::default();
            let question = channel.queue_bind(queue, exchange, key, options, FieldTable::default());
            shared.answer(question).await
        }
        Declaration::QueueExists { name: queue } => {
            let options = QueueDeclareOptions { passive: true, ..Default::default() };
            let queue = name(queue, "queue name")?;
            let question = channel.queue_declare(queue, options, FieldTable::default());
            shared.answer(question).await.map(drop)
        }
    })
}

fn error(wanted: &Declaration, fault: Fault) -> DeclareError {
    match wanted {
        // Of a binding it is one end that is missing.
        Declaration::Binding { queue, exchange, .. } if fault.code == Some(404) => {
            if fault.text.contains("no exchange") {
                Object::exchange(exchange).error(fault)
            } else {
                Object::queue(queue).error(fault)
            }
        }
        _ => Object::of(wanted).error(fault),
    }
}

/// Whether an exchange is there; anything but a clear no counts as yes, since the publish itself will tell.
pub(super) async fn exchange_exists(shared: &Shared, exchange: &str) -> bool {
    let Ok(name) = convert::short(exchange, "exchange name") else {
        return false;
    };
    let Ok(channel) = shared.channel().await else {
        return true;
    };
    let options = ExchangeDeclareOptions { passive: true, ..Default::default() };
    let kind = LapinExchange::Direct;
    let question = channel.exchange_declare(name, kind, options, FieldTable::default());
    match shared.answer(question).await {
        Ok(()) => {
            shared.close_channel(&channel).await;
            true
        }
        Err(fault) => {
            refused(shared, &channel, &fault).await;
            fault.code != Some(404)
        }
    }
}

/// Keeps the account of channels after a refusal.
pub(super) async fn refused(shared: &Shared, channel: &Channel, fault: &Fault) {
    match fault.scope {
        Scope::Channel if fault.code.is_some() => shared.lost_channel(),
        _ => shared.close_channel(channel).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(code: u16, text: &str) -> Fault {
        Fault { scope: Scope::Channel, code: Some(code), text: text.to_owned() }
    }

    #[test]
    fn each_refusal_has_its_kind() {
        let queue = Object::queue("q");
        let object = || "queue `q`".to_owned();
        let missing = "NOT_FOUND - no queue 'q' in vhost '/'";
        assert_eq!(queue.error(fault(404, missing)), DeclareError::Missing { object: object() });
        let down = "NOT_FOUND - home node 'r@h' of durable queue 'q' in vhost '/' is down or inaccessible";
        let refused = DeclareError::Refused { object: object(), text: down.to_owned() };
        assert_eq!(queue.error(fault(404, down)), refused);
        let other = "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': …";
        assert!(matches!(queue.error(fault(406, other)), DeclareError::Mismatch { .. }));
        let wrong = "PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'q' in vhost '/': {value_negative,-1}";
        assert!(matches!(queue.error(fault(406, wrong)), DeclareError::Refused { .. }));
        assert!(matches!(queue.error(fault(403, "")), DeclareError::Denied { .. }));
        assert!(matches!(queue.error(fault(405, "")), DeclareError::Refused { .. }));
        assert!(matches!(queue.error(Fault::connection("")), DeclareError::Lost { .. }));
    }

    #[test]
    fn a_binding_names_the_end_that_is_missing() {
        let wanted =
            Declaration::Binding { queue: "q".to_owned(), exchange: "e".to_owned(), routing_key: "k".to_owned() };
        let missing = |text| match error(&wanted, fault(404, text)) {
            DeclareError::Missing { object } => object,
            other => panic!("{other:?}"),
        };
        assert_eq!(missing("NOT_FOUND - no exchange 'e' in vhost '/'"), "exchange `e`");
        assert_eq!(missing("NOT_FOUND - no queue 'q' in vhost '/'"), "queue `q`");
    }
}
