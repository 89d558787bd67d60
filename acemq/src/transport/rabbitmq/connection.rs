//! A connection as the engine sees it.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::watch;

use super::{
    consume, declare,
    open::Opened,
    publish::Entrance,
    shared::{Ground, Shared},
    url::Target,
};
use crate::{
    topology::Declaration,
    transport::{
        Connection, ConnectionState, DeclareError, Lane, Outgoing, PublishError, Routing, Subscribe, Subscription,
    },
};

/// One connection to RabbitMQ, for one life.
#[derive(Debug)]
pub(super) struct RabbitConnection {
    shared: Arc<Shared>,
    hops: Entrance,
    user: Entrance,
}

impl RabbitConnection {
    pub(super) fn new(ground: Arc<Ground>, target: Target, opened: Opened) -> Self {
        let shared = Shared::new(ground, target, opened);
        Self { hops: Entrance::open(&shared), user: Entrance::open(&shared), shared }
    }

    fn lost<T>(&self, object: String) -> Result<T, DeclareError> {
        let why = self.shared.end_or("the connection is closing");
        Err(DeclareError::Lost { object, why })
    }
}

impl Connection for RabbitConnection {
    fn declare<'a>(&'a self, wanted: &'a Declaration) -> BoxFuture<'a, Result<(), DeclareError>> {
        let operation = declare::declare(Arc::clone(&self.shared), wanted.clone());
        async move {
            match self.shared.run(operation).await {
                Some(result) => result,
                None => self.lost(declare::Object::of(wanted).to_string()),
            }
        }
        .boxed()
    }

    fn subscribe<'a>(&'a self, wanted: &'a Subscribe) -> BoxFuture<'a, Result<Subscription, DeclareError>> {
        let operation = consume::subscribe(Arc::clone(&self.shared), wanted.clone());
        async move {
            match self.shared.run(operation).await {
                Some(result) => result,
                None => self.lost(declare::Object::queue(&wanted.queue).to_string()),
            }
        }
        .boxed()
    }

    fn publish(&self, message: Outgoing, lane: Lane) -> BoxFuture<'static, Result<Routing, PublishError>> {
        let entrance = match lane {
            Lane::Hop => &self.hops,
            Lane::User => &self.user,
        };
        match entrance.publish(&self.shared, message) {
            Ok(answer) => async {
                answer.await.unwrap_or_else(|_| {
                    let why = "the transport was dropped".to_owned();
                    Err(PublishError::Unknown { why })
                })
            }
            .boxed(),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn state(&self) -> watch::Receiver<ConnectionState> {
        self.shared.watch()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let closing = shut(&self.shared);
        async move {
            if let Some(closing) = closing {
                // Only a panic or the end of the runtime keeps it from its end.
                let _ = closing.await;
            }
        }
        .boxed()
    }
}

impl Drop for RabbitConnection {
    fn drop(&mut self) {
        shut(&self.shared);
    }
}

/// Closes in the background, whether or not somebody waits for it. Closing twice is closing once.
fn shut(shared: &Arc<Shared>) -> Option<tokio::task::JoinHandle<()>> {
    let handle = shared.ground.background.handle()?;
    let shared = Arc::clone(shared);
    Some(handle.spawn(async move { shared.shut().await }))
}
