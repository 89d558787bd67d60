//! One connection to the broker: what its channels, lanes and declarations have in common.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use lapin::{Connection as Lapin, ConnectionStatus, Event};
use tokio::{
    sync::{oneshot, watch},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    config::Settings, fault::Fault, filter::Greeting, open::Opened, runtime::Background, url::Target, wire::Switch,
};
use crate::transport::ConnectionState;

/// What every connection of one transport shares.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) background: Background,
    pub(super) settings: Settings,
    /// What the broker said about the largest body; zero while it has not.
    pub(super) learned_max_size: AtomicUsize,
}

/// The state of one connection.
pub(super) struct Shared {
    pub(super) ground: Arc<Ground>,
    pub(super) target: Target,
    lapin: Mutex<Option<Arc<Lapin>>>,
    status: ConnectionStatus,
    switch: Switch,
    state: watch::Sender<ConnectionState>,
    tasks: TaskTracker,
    lanes: TaskTracker,
    /// Tells the lanes to finish what they have.
    pub(super) finish: CancellationToken,
    /// Ends what still runs.
    pub(super) stop: CancellationToken,
    pub(super) frame_max: usize,
    /// What the broker says of itself.
    pub(super) greeting: Greeting,
    channel_max: u16,
    /// Channels that the broker closed. lapin cannot use the id of one again: when its ids come round, opening it fails.
    lost_channels: AtomicU16,
}

impl Shared {
    /// Takes over a fresh connection. Runs on the background runtime.
    pub(super) fn new(ground: Arc<Ground>, target: Target, opened: Opened) -> Arc<Self> {
        let Opened { lapin, greeting, switch } = opened;
        let shared = Arc::new(Self {
            ground,
            target,
            status: lapin.status().clone(),
            switch,
            state: watch::Sender::new(ConnectionState::Open),
            tasks: TaskTracker::new(),
            lanes: TaskTracker::new(),
            finish: CancellationToken::new(),
            stop: CancellationToken::new(),
            frame_max: usize::try_from(lapin.configuration().frame_max()).unwrap_or(usize::MAX),
            greeting,
            channel_max: lapin.configuration().channel_max(),
            lost_channels: AtomicU16::new(0),
            lapin: Mutex::new(None),
        });
        let events = lapin.events_listener();
        *shared.slot() = Some(Arc::new(lapin));
        shared.spawn(watch_events(Arc::clone(&shared), events));
        shared
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Arc<Lapin>>> {
        self.lapin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.ground.settings
    }

    /// Runs a task of this connection, which its close waits for.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(handle) = self.ground.background.handle() {
            self.tasks.spawn_on(task, handle);
        }
    }

    /// Runs a lane, whose end a close awaits first.
    pub(super) fn spawn_lane(&self, lane: impl Future<Output = ()> + Send + 'static) {
        if let Some(handle) = self.ground.background.handle() {
            self.lanes.spawn_on(lane, handle);
        }
    }

    /// Runs an operation to its end on the background runtime, whoever still waits for it; nothing if the connection ends
    /// first.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        operation: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (answer, result) = oneshot::channel();
        let stop = self.stop.clone();
        self.spawn(async move {
            if let Some(value) = stop.run_until_cancelled_owned(operation).await {
                // Nobody may be waiting any more.
                let _ = answer.send(value);
            }
        });
        result.await.ok()
    }

    pub(super) fn watch(&self) -> watch::Receiver<ConnectionState> {
        self.state.subscribe()
    }

    pub(super) fn state(&self) -> ConnectionState {
        self.state.borrow().clone()
    }

    /// Whether lapin still holds the connection for usable.
    pub(super) fn connected(&self) -> bool {
        self.status.connected()
    }

    /// Why the connection ended, or the given text while it has not.
    pub(super) fn end_or(&self, text: &str) -> String {
        match &*self.state.borrow() {
            ConnectionState::Closed { reason } => reason.clone(),
            _ => text.to_owned(),
        }
    }

    /// Marks the connection as gone, and ends everything on it.
    pub(super) fn fail(&self, reason: impl Into<String>) {
        self.end(reason);
        self.switch.cut();
    }

    /// Marks the connection as gone, unless it is, and tells its tasks.
    fn end(&self, reason: impl Into<String>) {
        let reason = reason.into();
        self.state.send_if_modified(|state| {
            let news = !matches!(state, ConnectionState::Closed { .. });
            if news {
                *state = ConnectionState::Closed { reason };
            }
            news
        });
        self.stop.cancel();
    }

    /// Takes note of the broker's mood, until the end.
    fn become_open(&self, next: ConnectionState) {
        self.state.send_if_modified(|state| {
            let open = !matches!(state, ConnectionState::Closed { .. });
            if open {
                *state = next;
            }
            open
        });
    }

    /// Waits for an answer of the broker, but not for ever.
    pub(super) async fn answer<T>(&self, question: impl Future<Output = lapin::Result<T>>) -> Result<T, Fault> {
        let patience = self.settings().answer_timeout;
        match timeout(patience, question).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(Fault::from(&error)),
            Err(_) => Err(Fault::connection(format!("the broker did not answer within {patience:?}"))),
        }
    }

    /// Opens a channel.
    pub(super) async fn channel(&self) -> Result<lapin::Channel, Fault> {
        let Some(lapin) = self.slot().clone() else {
            return Err(Fault::connection(self.end_or("the connection is closed")));
        };
        // Each id of a channel that the broker closed fails once when it comes round.
        for _ in 0..3 {
            match self.answer(lapin.create_channel()).await {
                Err(fault) if fault.code.is_some() && self.connected() => {
                    tracing::debug!(error = %fault.text, "a channel id is spent, trying the next");
                }
                answer => {
                    return answer.map_err(|fault| Fault::connection(self.end_or(&fault.text)));
                }
            }
        }
        self.fail("no channel can be opened on it any more");
        Err(Fault::connection(self.end_or("")))
    }

    /// Closes a channel of ours; its id can be used again then.
    pub(super) async fn close_channel(&self, channel: &lapin::Channel) {
        if channel.status().connected() {
            let close = channel.close(200, "OK".into());
            if timeout(self.settings().close_timeout, close).await.is_err() {
                tracing::debug!("the broker did not answer the close of a channel in time");
            }
        }
    }

    /// Whether declarations should no longer risk channels of this connection.
    pub(super) fn spares_channels(&self) -> bool {
        self.lost_channels.load(Ordering::Relaxed) >= (self.channel_max / 4).min(100)
    }

    /// Counts a channel that the broker closed, and gives the connection up when half of the ids are spent.
    pub(super) fn lost_channel(&self) {
        let lost = self.lost_channels.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if lost >= (self.channel_max / 2).clamp(2, 1000) {
            self.fail(format!("the broker closed {lost} channels on it"));
        }
    }

    /// Closes the connection and waits for outstanding confirms, its tasks, its thread and its socket, each within a bound.
    pub(super) async fn shut(&self) {
        let patience = self.settings().close_timeout;
        self.finish.cancel();
        self.lanes.close();
        if timeout(patience, self.lanes.wait()).await.is_err() {
            tracing::warn!(address = %self.target.address(), "some publishes were not confirmed before the close");
        }
        let lapin = self.slot().take();
        if let Some(lapin) = &lapin
            && self.connected()
            && timeout(patience, lapin.close(200, "OK".into())).await.is_ok()
        {
            // lapin closes the socket itself.
            self.end(CLOSED_HERE);
        } else {
            self.fail(CLOSED_HERE);
        }
        self.tasks.close();
        let ended = async { tokio::join!(self.tasks.wait(), self.lanes.wait()) };
        if timeout(patience, ended).await.is_err() {
            tracing::warn!(tasks = self.tasks.len(), "tasks of a closed connection still run");
        }
        if let Some(lapin) = lapin.and_then(Arc::into_inner) {
            let mut ended = std::pin::pin!(joined(lapin));
            if timeout(patience, ended.as_mut()).await.is_err() {
                self.switch.cut();
                if timeout(patience, ended).await.is_err() {
                    tracing::warn!("the thread of a closed connection still runs");
                }
            }
        }
        self.switch.cut();
    }
}

const CLOSED_HERE: &str = "it was closed here";

/// Waits for the end of lapin's thread, which holds the socket.
async fn joined(lapin: Lapin) {
    let (done, ended) = oneshot::channel();
    // lapin offers nothing but a blocking join, which in a thread of its own blocks nobody.
    let joiner = std::thread::Builder::new().name("acemq-amqp-end".to_owned()).spawn(move || {
        if let Err(error) = lapin.run() {
            tracing::debug!(%error, "a connection ended with an error");
        }
        let _ = done.send(());
    });
    if joiner.is_ok() {
        let _ = ended.await;
    }
}

/// Translates lapin's events into states.
async fn watch_events(shared: Arc<Shared>, events: impl futures_util::Stream<Item = Event> + Send + 'static) {
    futures_util::pin_mut!(events);
    // Some ends have no event, such as a close by the broker with a code that lapin does not know.
    let mut look = interval(Duration::from_millis(250));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut closing = 0;
    loop {
        let event = tokio::select! {
            () = shared.stop.cancelled() => return,
            event = events.next() => event,
            _ = look.tick() => {
                // A farewell of the broker ends by an event, in a moment; ours is the business of `shut`.
                let farewell = shared.status.closing();
                closing += u32::from(farewell && shared.slot().is_some());
                if !shared.connected() && (!farewell || closing > 8) {
                    shared.fail("lapin reports the end of the connection");
                }
                continue;
            }
        };
        match event {
            Some(Event::ConnectionBlocked(reason)) => {
                tracing::warn!(address = %shared.target.address(), %reason, "the broker blocks publishers");
                shared.become_open(ConnectionState::Blocked { reason });
            }
            Some(Event::ConnectionUnblocked) => shared.become_open(ConnectionState::Open),
            // Also sent for the end of a channel, without saying which.
            Some(Event::Error(error)) if !shared.connected() => {
                shared.fail(Fault::from(&error).text);
            }
            Some(_) => {}
            None => shared.fail("lapin ended"),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("address", &self.target.address())
            .field("state", &*self.state.borrow())
            .finish_non_exhaustive()
    }
}
