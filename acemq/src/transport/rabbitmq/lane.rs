//! One lane of publishes: a task that owns a confirm channel and everything that is outstanding on it.
//!
//! lapin takes the number of a publish and queues its frames under two locks, so that two tasks on one channel mix up their
//! confirms; here only one task polls. It keeps a window of publishes outstanding, and [`Window`] decides them.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use futures_util::{future::poll_fn, stream::FuturesUnordered};
use lapin::{Channel, options::ConfirmSelectOptions};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    drain::Drain,
    exchanges::Exchanges,
    fault::{Fault, Scope},
    flight::{Loss, Meter, publish, settle, unknown},
    publish::{self, Job, Parts},
    queue,
    shared::Shared,
    window::{Key, Window},
};
use crate::transport::PublishError;

/// Publishes outstanding at most. lapin walks all of them for each confirm of many.
const WINDOW: usize = 1000;
/// Publishes that nobody waits for any more, before their channel is given up.
const EXPIRED: usize = 1000;
/// A body that no broker refuses by default. A larger one goes alone: the limit may be known wrongly, and a refusal takes
/// the channel down with everything that is outstanding on it.
const SURELY_TAKEN: usize = 16 << 20;
/// After a refusal that could not be pinned on one message, so many go one by one.
const CAREFUL: usize = 100;
/// So many channels that are lost in a row, without a publish that got anywhere, are no reason to open another.
const BARREN: usize = 5;
/// How long what is outstanding on a lost channel may take to end.
const ENDING: Duration = Duration::from_secs(1);

/// Serves a lane until its entrance is gone or the connection ends.
pub(super) async fn run(shared: Arc<Shared>, queue: mpsc::UnboundedReceiver<Job>) {
    let mut lane =
        Lane { shared, queue, pending: VecDeque::new(), careful: 0, barren: 0, exchanges: Exchanges::default() };
    while lane.wait_for_work().await {
        let channel = match lane.open().await {
            Ok(channel) => channel,
            Err(fault) => {
                lane.refuse_all(&fault.text);
                continue;
            }
        };
        if let End::Over = lane.serve(&channel).await {
            break;
        }
    }
    lane.pending.extend(queue::rest(&mut lane.queue).await);
    let reason = lane.shared.end_or("the connection is closing");
    lane.refuse_all(&reason);
}

struct Lane {
    shared: Arc<Shared>,
    queue: mpsc::UnboundedReceiver<Job>,
    /// Taken from the queue and not written; also what a lost channel left unwritten.
    pending: VecDeque<Job>,
    careful: usize,
    /// Channels that were lost since a publish got anywhere.
    barren: usize,
    exchanges: Exchanges,
}

enum End {
    /// Nothing more comes, or the connection is gone.
    Over,
    /// The channel is gone; another one can go on.
    Channel,
}

impl Lane {
    /// False when there will be none.
    async fn wait_for_work(&mut self) -> bool {
        let stop = self.shared.stop.clone();
        if self.pending.is_empty() {
            let mut batch = Vec::new();
            stop.run_until_cancelled(receive(&mut self.queue, &self.shared.finish, &mut batch)).await;
            self.pending.extend(batch);
        }
        !self.pending.is_empty() && !stop.is_cancelled()
    }

    async fn open(&self) -> Result<Channel, Fault> {
        let channel = self.shared.channel().await?;
        let select = channel.confirm_select(ConfirmSelectOptions::default());
        self.shared.answer(select).await?;
        Ok(channel)
    }

    fn refuse_all(&mut self, why: &str) {
        for job in self.pending.drain(..) {
            job.refuse(why);
        }
    }

    /// Publishes on one channel for as long as it lives.
    async fn serve(&mut self, channel: &Channel) -> End {
        let stop = self.shared.stop.clone();
        let meter = Meter::default();
        let mut window = Window::<Job>::new();
        let mut flying = FuturesUnordered::new();
        let drain = Drain::default();
        let mut outcomes = Vec::new();
        let mut batch = Vec::new();
        let mut open = true;
        // Deadlines only move on, so the timer is set once for many publishes, and goes off too early at worst.
        let mut timer = pin!(sleep_until(Instant::now()));
        let mut armed = false;
        let mut lost = loop {
            while let Some((job, parts, key)) = self.next(&window, &meter).await {
                let deadline = Instant::now() + self.shared.settings().confirm_timeout;
                let (body, mandatory) = (job.message.body.clone(), job.message.mandatory);
                meter.unwritten.fetch_add(body.len(), Ordering::Relaxed);
                let number = window.push(key, mandatory, deadline, job);
                flying.push(publish(channel, number, parts, body, mandatory, &meter));
            }
            if !open && window.live() == 0 && self.pending.is_empty() {
                self.shared.close_channel(channel).await;
                return End::Over;
            }
            let room = self.pending.is_empty() && window.live() < WINDOW;
            let brimful = !self.pending.is_empty() && meter.is_full();
            if let Some(deadline) = window.next_deadline().filter(|_| !armed) {
                timer.as_mut().reset(deadline);
                armed = true;
            }
            tokio::select! {
                biased;
                () = poll_fn(|cx| match drain.poll(&mut flying, cx, &mut outcomes) {
                    // Something was written, and so there is room for more.
                    Poll::Pending if brimful && !meter.is_full() => Poll::Ready(()),
                    poll => poll,
                }) => {
                    if outcomes.iter().any(|(_, outcome)| outcome.is_answer()) {
                        self.barren = 0;
                    }
                    let Ok(lost) = settle(&mut window, &mut outcomes) else {
                        tracing::error!("the broker returned a message that is not outstanding");
                        return self.lose_track(window, channel).await;
                    };
                    if !lost.is_empty() {
                        break lost;
                    }
                    if window.expired() > EXPIRED {
                        tracing::warn!("too many publishes have no confirm");
                        return self.lose_track(window, channel).await;
                    }
                }
                taken = receive(&mut self.queue, &self.shared.finish, &mut batch), if open && room => {
                    open = taken > 0;
                    self.pending.extend(batch.drain(..));
                }
                () = &mut timer, if armed => {
                    armed = false;
                    let after = self.shared.settings().confirm_timeout;
                    for job in window.expire(Instant::now()) {
                        job.answer(unknown(&format!("no confirm within {after:?}")));
                    }
                }
                () = stop.cancelled() => break Vec::new(),
            }
        };
        // The others end in a moment, and then it is known which of them were written.
        let rest = async {
            while !flying.is_empty() {
                poll_fn(|cx| drain.poll(&mut flying, cx, &mut outcomes)).await;
                lost.extend(settle(&mut window, &mut outcomes).unwrap_or_default());
            }
        };
        // What is left after the time counts as written.
        let _ = timeout(ENDING, rest).await;
        self.lose(window, lost)
    }

    /// The next publish that may be written now.
    async fn next(&mut self, window: &Window<Job>, meter: &Meter) -> Option<(Job, Parts, Key)> {
        loop {
            let alone = window.live() == 0;
            let full = window.live() >= WINDOW || meter.is_full();
            if !alone && (full || self.careful > 0) {
                return None;
            }
            let message = &self.pending.front()?.message;
            if !alone && message.body.len() > SURELY_TAKEN {
                return None;
            }
            let id = message.properties.message_id.as_deref();
            let key = window.key(id, &message.exchange, &message.routing_key);
            let exchange = message.exchange.clone();
            let mut job = self.pending.pop_front()?;
            if let Err(error) = publish::open_for_publishes(&self.shared) {
                job.answer(Err(error));
                continue;
            }
            if !self.exchanges.exists(&self.shared, &exchange).await {
                job.answer(Err(PublishError::NoExchange { exchange }));
                continue;
            }
            let parts = job.parts.take().map_or_else(|| Parts::of(&job.message), Ok);
            match parts {
                Ok(parts) => {
                    self.careful = self.careful.saturating_sub(1);
                    return Some((job, parts, key));
                }
                Err(error) => job.answer(Err(PublishError::Invalid { why: error.to_string() })),
            }
        }
    }

    /// The account of the channel is wrong, or hopeless: nothing that is outstanding on it can be told.
    async fn lose_track(&mut self, mut window: Window<Job>, channel: &Channel) -> End {
        window.drain().for_each(|job| job.answer(unknown("its channel was given up")));
        self.shared.close_channel(channel).await;
        End::Channel
    }

    /// The channel or the connection ended under what is outstanding.
    fn lose(&mut self, mut window: Window<Job>, mut lost: Vec<Loss>) -> End {
        lost.sort_by_key(|loss| loss.number);
        let fault = lost.iter().find(|loss| loss.fault.code.is_some()).or(lost.first());
        let fault = fault.map_or_else(|| Fault::connection("the connection was closed"), |loss| loss.fault.clone());
        let unwritten = lost.iter().filter(|loss| !loss.written);
        let unwritten: Vec<Job> = unwritten.filter_map(|loss| window.remove(loss.number)).collect();
        // With lapin's account broken off, what is left was written and has no certain answer, not even where an ack came
        // with the return of another message.
        let written: Vec<Job> = window.drain().collect();
        if fault.scope == Scope::Connection || !self.shared.connected() {
            let why = self.shared.end_or(&fault.text);
            for job in unwritten {
                job.refuse(why.as_str());
            }
            for job in written {
                job.answer(unknown(&why));
            }
            return End::Over;
        }
        if fault.code.is_some() {
            self.shared.lost_channel();
        }
        self.barren = if written.is_empty() { self.barren + 1 } else { 0 };
        self.blame(written, &fault);
        for job in unwritten.into_iter().rev() {
            self.pending.push_front(job);
        }
        if self.barren >= BARREN {
            self.refuse_all(&fault.text);
        }
        End::Channel
    }

    /// Answers what was written on a channel that the broker closed, and finds the message that was to blame.
    fn blame(&mut self, written: Vec<Job>, fault: &Fault) {
        let alone = written.len() == 1;
        let limit = publish::limit_in(&fault.text);
        if let Some(limit) = limit {
            self.shared.ground.learned_max_size.store(limit, Ordering::Relaxed);
        }
        let mut found = false;
        for job in written {
            let exchange = &job.message.exchange;
            let size = job.message.body.len();
            let error = match (fault.code, limit) {
                (Some(404), _) if fault.text.contains(&format!("no exchange '{exchange}' ")) => {
                    self.exchanges.is_missing(exchange);
                    PublishError::NoExchange { exchange: exchange.clone() }
                }
                (Some(_), Some(limit)) if size > limit => PublishError::TooLarge { size, limit },
                (Some(_), _) if alone => PublishError::Invalid { why: fault.text.clone() },
                _ => {
                    job.answer(unknown(&fault.text));
                    continue;
                }
            };
            found = true;
            job.answer(Err(error));
        }
        if !found && fault.code.is_some() {
            tracing::warn!(
                error = %fault.text,
                "one of several messages made the broker close a channel; the next ones go one by one"
            );
            self.careful = CAREFUL;
        }
    }
}

/// Takes what is queued; nothing once the queue is at its end.
async fn receive(queue: &mut mpsc::UnboundedReceiver<Job>, finish: &CancellationToken, batch: &mut Vec<Job>) -> usize {
    loop {
        tokio::select! {
            biased;
            taken = queue.recv_many(batch, WINDOW) => return taken,
            () = finish.cancelled(), if !queue.is_closed() => queue.close(),
        }
    }
}
