//! What the broker does, in paused time.

mod balance;
mod consuming;
mod declaring;
mod dying;
mod fault;
mod publishing;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};

use tokio::task::unconstrained;

use super::Memory;
use crate::{
    envelope::{Properties, Table, Value},
    topology::{Declaration, ExchangeKind},
    transport::{
        ChannelLost, Connection, DeclareError, Incoming, Lane, Outgoing, PublishError, Role, Routing, Subscribe,
        Subscription, Transport as _,
    },
};

fn queue<const N: usize>(name: &str, arguments: [(&str, Value); N]) -> Declaration {
    let arguments = arguments.map(|(name, value)| (name.to_owned(), value));
    Declaration::Queue { name: name.to_owned(), arguments: Table::from(arguments) }
}

fn exchange(name: &str, kind: ExchangeKind) -> Declaration {
    let name = name.to_owned();
    Declaration::Exchange { name, kind }
}

fn binding(queue: &str, exchange: &str, routing_key: &str) -> Declaration {
    Declaration::Binding { queue: queue.to_owned(), exchange: exchange.to_owned(), routing_key: routing_key.to_owned() }
}

/// A message whose body is its name.
fn message(exchange: &str, routing_key: &str, body: &str) -> Outgoing {
    Outgoing {
        exchange: exchange.to_owned(),
        routing_key: routing_key.to_owned(),
        mandatory: true,
        properties: Properties { message_id: Some(body.to_owned()), ..Properties::default() },
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

/// A broker with what is declared.
fn broker(declarations: &[Declaration]) -> Memory {
    let broker = Memory::private();
    for declaration in declarations {
        broker.declare(declaration).unwrap();
    }
    broker
}

/// Puts messages into a queue.
fn fill(broker: &Memory, queue: &str, bodies: &[&str]) {
    for body in bodies {
        let routed = broker.publish(message("", queue, body));
        assert_eq!(routed, Ok(Routing::Routed));
    }
}

async fn connect(broker: &Memory, role: Role) -> Arc<dyn Connection> {
    broker.connect(role).await.unwrap()
}

async fn subscribe(connection: &Arc<dyn Connection>, queue: &str, prefetch: u16) -> Result<Subscription, DeclareError> {
    let wanted = Subscribe { queue: queue.to_owned(), prefetch, tag: format!("consumer of {queue}") };
    connection.subscribe(&wanted).await
}

async fn consumer(broker: &Memory, queue: &str, prefetch: u16) -> (Arc<dyn Connection>, Subscription) {
    let connection = connect(broker, Role::Consume).await;
    let subscription = subscribe(&connection, queue, prefetch).await.unwrap();
    (connection, subscription)
}

/// What has arrived by now; an end is left for the next look.
fn arrived(subscription: &mut Subscription) -> Vec<Incoming> {
    let mut found = Vec::new();
    // Constrained, a test that looks too often would see nothing.
    while let Some(Some(Ok(delivery))) = unconstrained(subscription.deliveries.next()).now_or_never() {
        found.push(delivery);
    }
    found
}

/// What the stream of deliveries has come to.
#[derive(Debug, PartialEq)]
enum End {
    Running,
    Clean,
    Lost(ChannelLost),
}

fn end(subscription: &mut Subscription) -> End {
    match unconstrained(subscription.deliveries.next()).now_or_never() {
        None => End::Running,
        Some(None) => End::Clean,
        Some(Some(Err(lost))) => End::Lost(lost),
        Some(Some(Ok(delivery))) => panic!("a delivery instead of an end: {delivery:?}"),
    }
}

fn lost(subscription: &mut Subscription) -> ChannelLost {
    match end(subscription) {
        End::Lost(lost) => lost,
        other => panic!("{other:?} instead of a loss"),
    }
}

fn bodies(messages: &[Incoming]) -> Vec<&str> {
    messages.iter().map(|message| std::str::from_utf8(&message.body).unwrap()).collect()
}

fn redelivered(messages: &[Incoming]) -> Vec<bool> {
    messages.iter().map(|message| message.redelivered).collect()
}
