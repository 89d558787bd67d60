//! Subscriptions: the stream of deliveries, and the channel that settles them.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt, Stream, StreamExt, future::BoxFuture};
use lapin::{
    Consumer,
    options::{BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions},
    types::{FieldTable, ShortString},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{
    convert,
    declare::{Object, refused},
    fault::{Fault, Scope},
    queue,
    shared::Shared,
    tags::{Frame, Tags},
};
use crate::transport::{Channel, ChannelLost, DeclareError, Incoming, Settled, Subscribe, Subscription, Verdict};

/// How many settlements are written at once at most. The broker's prefetch window moves with every flush, so a flush waits
/// for nothing: it takes what is there.
const FLUSH: usize = 64;

/// How often a channel is looked at whose end nobody told.
const LOOK: Duration = Duration::from_millis(250);

/// Opens a channel and consumes on it. Runs on the background runtime.
pub(super) async fn subscribe(shared: Arc<Shared>, wanted: Subscribe) -> Result<Subscription, DeclareError> {
    let object = Object::queue(&wanted.queue);
    let text = |text: &str, what| convert::short(text, what).map_err(|error| object.unfit(&error));
    let queue = text(&wanted.queue, "queue name")?;
    let tag = text(&wanted.tag, "consumer tag")?;
    let channel = shared.channel().await.map_err(|fault| object.error(fault))?;
    let consuming = async {
        // Zero would be no limit at all.
        let qos = channel.basic_qos(wanted.prefetch.max(1), BasicQosOptions { global: false });
        shared.answer(qos).await?;
        let options = BasicConsumeOptions::default();
        let consume = channel.basic_consume(queue, tag.clone(), options, FieldTable::default());
        shared.answer(consume).await
    };
    let consumer = match consuming.await {
        Ok(consumer) => consumer,
        Err(fault) => {
            refused(&shared, &channel, &fault).await;
            return Err(object.error(fault));
        }
    };

    let (commands, settlements) = mpsc::unbounded_channel();
    let common = Arc::new(Common {
        channel,
        shared: Arc::clone(&shared),
        delivered: AtomicU64::new(0),
        ended_here: AtomicBool::new(false),
        gone: CancellationToken::new(),
    });
    shared.spawn(settle_all(Arc::clone(&common), settlements));
    let gone = Box::pin(common.gone.clone().cancelled_owned());
    let deliveries = Deliveries { consumer, common: Arc::clone(&common), gone, over: false };
    Ok(Subscription { deliveries: deliveries.boxed(), channel: Arc::new(RabbitChannel { common, commands, tag }) })
}

/// What the stream, the settling task and the handle have in common.
struct Common {
    channel: lapin::Channel,
    shared: Arc<Shared>,
    /// The highest tag that the stream has yielded.
    delivered: AtomicU64,
    /// Whether an end of the stream is no news.
    ended_here: AtomicBool,
    /// Cancelled when the channel is seen to be gone.
    gone: CancellationToken,
}

struct Deliveries {
    consumer: Consumer,
    common: Arc<Common>,
    gone: Pin<Box<WaitForCancellationFutureOwned>>,
    over: bool,
}

impl Deliveries {
    fn lost(&mut self, fault: &Fault) -> ChannelLost {
        self.over = true;
        let connection = fault.scope == Scope::Connection || !self.common.shared.connected();
        if !connection {
            self.common.shared.lost_channel();
        }
        ChannelLost { why: self.common.shared.end_or(&fault.text), connection }
    }
}

impl Stream for Deliveries {
    type Item = Result<Incoming, ChannelLost>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if this.over {
                return Poll::Ready(None);
            }
            let Poll::Ready(item) = this.consumer.poll_next_unpin(cx) else {
                // lapin does not end every stream of a connection that is reset in the middle of a delivery.
                std::task::ready!(this.gone.as_mut().poll(cx));
                if this.common.ended_here.load(Ordering::Acquire) {
                    this.over = true;
                    continue;
                }
                let fault = Fault::channel("the channel ended");
                return Poll::Ready(Some(Err(this.lost(&fault))));
            };
            let open = this.common.channel.status().connected();
            match item {
                // What a lost channel had buffered can no longer be settled, and comes again on the next one.
                Some(Ok(_)) if !open => {}
                Some(Ok(delivery)) => {
                    this.common.delivered.store(delivery.delivery_tag, Ordering::Release);
                    return Poll::Ready(Some(Ok(convert::incoming(delivery))));
                }
                Some(Err(error)) => {
                    return Poll::Ready(Some(Err(this.lost(&Fault::from(&error)))));
                }
                None if !open && !this.common.ended_here.load(Ordering::Acquire) => {
                    let fault = Fault::channel("the channel ended");
                    return Poll::Ready(Some(Err(this.lost(&fault))));
                }
                None => this.over = true,
            }
        }
    }
}

enum Command {
    Settle(u64, Verdict),
    Close(oneshot::Sender<()>),
}

/// Owns the delivery tags of a channel: everything that is settled on it goes through here, in order.
async fn settle_all(common: Arc<Common>, mut commands: mpsc::UnboundedReceiver<Command>) {
    settle_until_the_end(&common, &mut commands).await;
    // What is still in it can no longer be settled, and whoever asked for a close has it.
    drop(queue::rest(&mut commands).await);
}

async fn settle_until_the_end(common: &Common, commands: &mut mpsc::UnboundedReceiver<Command>) {
    let stop = common.shared.stop.clone();
    // However this ends, nothing more comes.
    let _gone = common.gone.clone().drop_guard();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut tags = Tags::default();
    let mut frames = Vec::with_capacity(FLUSH);
    let mut batch = Vec::with_capacity(FLUSH);
    loop {
        let taken = tokio::select! {
            biased;
            taken = commands.recv_many(&mut batch, FLUSH) => taken,
            () = stop.cancelled() => return,
            _ = look.tick() => {
                if !common.channel.status().connected() {
                    return;
                }
                continue;
            }
        };
        if taken == 0 {
            break;
        }
        let mut closing = None;
        let settlements = batch.drain(..).filter_map(|command| match command {
            Command::Settle(tag, verdict) => Some((tag, verdict)),
            Command::Close(done) => {
                closing = Some(done);
                None
            }
        });
        let refused = tags.settle(settlements, common.delivered.load(Ordering::Acquire), &mut frames);
        if refused > 0 {
            tracing::warn!(refused, "settlements of unknown or settled deliveries were dropped");
        }
        for frame in frames.drain(..) {
            if !fire(&common.channel, frame) {
                return;
            }
        }
        if let Some(done) = closing {
            commands.close();
            common.shared.close_channel(&common.channel).await;
            // Its caller may have given up.
            let _ = done.send(());
            return;
        }
    }
    // Nobody holds the channel any more.
    common.shared.close_channel(&common.channel).await;
}

/// Hands a frame to lapin without waiting until it is written. False if the channel is gone.
///
/// lapin queues the frame when the future is polled for the first time, and writes the frames of a connection in their
/// order. So a close that comes after it takes it along, and to await each write would cost two thread switches.
fn fire(channel: &lapin::Channel, frame: Frame) -> bool {
    let written = match frame {
        Frame::Ack { tag, multiple } => channel.basic_ack(tag, BasicAckOptions { multiple }).now_or_never(),
        Frame::Requeue { tag } => {
            let options = BasicNackOptions { multiple: false, requeue: true };
            channel.basic_nack(tag, options).now_or_never()
        }
    };
    !matches!(written, Some(Err(_)))
}

struct RabbitChannel {
    common: Arc<Common>,
    commands: mpsc::UnboundedSender<Command>,
    tag: ShortString,
}

impl Channel for RabbitChannel {
    fn settle(&self, tag: u64, verdict: Verdict) -> Settled {
        if !self.common.channel.status().connected() {
            return Settled::Gone;
        }
        match self.commands.send(Command::Settle(tag, verdict)) {
            Ok(()) => Settled::Done,
            Err(_) => Settled::Gone,
        }
    }

    fn cancel(&self) -> BoxFuture<'_, ()> {
        let common = Arc::clone(&self.common);
        let tag = self.tag.clone();
        let operation = async move {
            common.ended_here.store(true, Ordering::Release);
            let cancel = common.channel.basic_cancel(tag, BasicCancelOptions::default());
            if let Err(fault) = common.shared.answer(cancel).await {
                tracing::debug!(error = %fault.text, "a consumer could not be cancelled");
            }
        };
        async { self.common.shared.run(operation).await.unwrap_or(()) }.boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.common.ended_here.store(true, Ordering::Release);
        let (done, closed) = oneshot::channel();
        let sent = self.commands.send(Command::Close(done));
        async move {
            if sent.is_ok() {
                // An error is the end of the task, and so of the channel.
                let _ = closed.await;
            }
        }
        .boxed()
    }
}

impl fmt::Debug for RabbitChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitChannel")
            .field("id", &self.common.channel.id())
            .field("consumer", &self.tag.as_str())
            .finish_non_exhaustive()
    }
}
