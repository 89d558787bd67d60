//! The broker as the seam sees it: connections, channels, deliveries.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture};
use tokio::sync::{mpsc, oneshot, watch};

use super::{
    broker::{Broker, ConnectionId, Link, Unconfirmed},
    declare::object,
    deliver::Sent,
    publish::Answer,
    queue::ChannelId,
};
use crate::{
    topology::Declaration,
    transport::{
        Channel, ConnectError, Connection, ConnectionState, DeclareError, Lane, Outgoing, PublishError, Role, Routing,
        Settled, Subscribe, Subscription, Verdict,
    },
};

/// How long a publish waits for its confirm.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to an embedded broker. Dropping it closes it.
#[derive(Debug)]
pub(super) struct MemoryConnection {
    broker: Arc<Broker>,
    id: ConnectionId,
    state: watch::Receiver<ConnectionState>,
}

impl MemoryConnection {
    pub(super) fn open(broker: Arc<Broker>, role: Role, address: String) -> Result<Self, ConnectError> {
        let opened = broker.with(|state| {
            if state.faults.refuse_connections {
                return None;
            }
            let now = match (&state.faults.blocked, role) {
                (Some(reason), Role::Publish) => ConnectionState::Blocked { reason: reason.clone() },
                _ => ConnectionState::Open,
            };
            let (sender, receiver) = watch::channel(now);
            let id = state.next_id();
            let link = Link { role, state: sender, channels: std::collections::BTreeSet::new() };
            state.connections.insert(id, link);
            Some((id, receiver))
        });
        match opened {
            Some((id, state)) => Ok(Self { broker, id, state }),
            None => Err(ConnectError::Unreachable { address, why: "connection refused".to_owned() }),
        }
    }

    fn hang_up(&self) {
        self.broker.with(|state| state.close_connection(self.id, "closed from this side"));
    }
}

impl Drop for MemoryConnection {
    fn drop(&mut self) {
        self.hang_up();
    }
}

impl Connection for MemoryConnection {
    fn declare<'a>(&'a self, wanted: &'a Declaration) -> BoxFuture<'a, Result<(), DeclareError>> {
        async move {
            self.broker.with(|state| {
                if state.connections.contains_key(&self.id) {
                    state.declare(wanted)
                } else {
                    Err(DeclareError::Lost { object: object(wanted), why: "the connection is closed".to_owned() })
                }
            })
        }
        .boxed()
    }

    fn subscribe<'a>(&'a self, wanted: &'a Subscribe) -> BoxFuture<'a, Result<Subscription, DeclareError>> {
        async move {
            let (id, receiver) = self.broker.with(|state| state.subscribe(self.id, wanted))?;
            let handle = Arc::new(Handle { broker: Arc::clone(&self.broker), id });
            let deliveries = Deliveries { receiver, handle: Arc::clone(&handle) };
            Ok(Subscription { deliveries: deliveries.boxed(), channel: Arc::new(MemoryChannel { handle }) })
        }
        .boxed()
    }

    fn publish(&self, message: Outgoing, lane: Lane) -> BoxFuture<'static, Result<Routing, PublishError>> {
        let connection = self.id;
        let answer = self.broker.with(|state| {
            state.may_publish(connection)?;
            if let Err(error) = state.check(&message) {
                if matches!(error, PublishError::NoExchange { .. }) {
                    // It closes the channel, and what was unconfirmed on that stays so.
                    state.give_up(|other| other.connection == connection && other.lane == lane);
                }
                return Err(error);
            }
            let nacked = state.faults.nacks > 0;
            state.faults.nacks = state.faults.nacks.saturating_sub(1);
            let answer = if nacked { Err(PublishError::Nacked) } else { state.accept(message) };
            let lost = state.faults.lost_confirms > 0;
            state.faults.lost_confirms = state.faults.lost_confirms.saturating_sub(1);
            if !lost && !state.faults.stalled {
                return answer.map(Confirm::Now);
            }
            // Whoever no longer waits needs no answer.
            state.give_up(|other| other.reply.is_closed());
            let (reply, wait) = oneshot::channel();
            state.unconfirmed.push(Unconfirmed { connection, lane, answer, lost, reply });
            Ok(Confirm::Later(wait))
        });
        match answer {
            Err(error) => std::future::ready(Err(error)).boxed(),
            Ok(Confirm::Now(routing)) => std::future::ready(Ok(routing)).boxed(),
            Ok(Confirm::Later(wait)) => wait_for(wait).boxed(),
        }
    }

    fn state(&self) -> watch::Receiver<ConnectionState> {
        self.state.clone()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move { self.hang_up() }.boxed()
    }
}

enum Confirm {
    Now(Routing),
    Later(oneshot::Receiver<Answer>),
}

async fn wait_for(confirm: oneshot::Receiver<Answer>) -> Answer {
    let why = match tokio::time::timeout(CONFIRM_TIMEOUT, confirm).await {
        Ok(Ok(answer)) => return answer,
        Ok(Err(_)) => "the channel was lost before the confirm".to_owned(),
        Err(_) => format!("no confirm within {CONFIRM_TIMEOUT:?}"),
    };
    Err(PublishError::Unknown { why })
}

/// Keeps a channel open. The last one to go closes it.
#[derive(Debug)]
struct Handle {
    broker: Arc<Broker>,
    id: ChannelId,
}

impl Handle {
    fn close(&self) {
        self.broker.with(|state| state.close_channel(self.id, "closed from this side", false));
    }

    fn cancel(&self) {
        self.broker.with(|state| state.cancel(self.id));
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}

/// A channel of an embedded broker. Its end comes with that of its deliveries.
#[derive(Debug)]
struct MemoryChannel {
    handle: Arc<Handle>,
}

impl Channel for MemoryChannel {
    fn settle(&self, tag: u64, verdict: Verdict) -> Settled {
        let Handle { broker, id } = &*self.handle;
        broker.with(|state| state.settle(*id, tag, verdict))
    }

    fn cancel(&self) -> BoxFuture<'_, ()> {
        async move { self.handle.cancel() }.boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move { self.handle.close() }.boxed()
    }
}

/// The deliveries of one consumer. Dropping them cancels it.
struct Deliveries {
    receiver: mpsc::UnboundedReceiver<Sent>,
    handle: Arc<Handle>,
}

impl Stream for Deliveries {
    type Item = Sent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Sent>> {
        self.receiver.poll_recv(cx)
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        self.handle.cancel();
    }
}
