//! Takes one delivery through its machine: does what the machine says, and tells it what happened.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use super::{
    account::{End, GaveBack, Stage},
    claims::Held,
    consumer::Consumer,
    gate::{Place, Slot},
    hop::{self, Remarks},
    inside,
    machine::{Effect, Event, Facts, Machine, Move, Note, Outcome, Target},
    origin::Origin,
};
use crate::{
    envelope::Envelope,
    handler::{Ack, Context, Delivered, panic_text},
    telemetry::{Settlement, span},
    transport::{Incoming, Lane, PublishError, Routing, Settled, Verdict},
};

/// One delivery on its way.
struct Driver {
    consumer: Arc<Consumer>,
    origin: Origin,
    tag: u64,
    context: Context,
    /// Whether the headers made sense; if not, the copy keeps the attempt that it came with.
    readable: bool,
    claim: Option<Held>,
    cancel: CancellationToken,
    slot: Option<Slot>,
    /// Until it is decided what becomes of the delivery.
    span: Span,
    stage: Stage,
    /// How it came to its end, if it did.
    end: Option<End>,
    handled_for: Option<Duration>,
    /// Why the delivery goes back, if it does and the reason is known.
    gave_back: Option<GaveBack>,
}

/// Takes a delivery from its arrival to its settlement.
pub(crate) async fn drive(consumer: Arc<Consumer>, origin: Origin, incoming: Incoming, place: Place) {
    let tag = incoming.tag;
    let slot = tokio::select! {
        biased;
        () = consumer.phase.closing.cancelled() => None,
        () = origin.lost.cancelled() => None,
        slot = place.pass(
            || consumer.account.moved(Stage::Held, Stage::Starting),
            || consumer.account.moved(Stage::Starting, Stage::Held),
        ) => Some(slot),
    };
    let Some(slot) = slot else {
        // No handler has seen it: back as it came.
        let outcome = match origin.give_back(tag, &consumer.phase).await {
            Settled::Done => Outcome::Requeued,
            Settled::Gone => Outcome::Lost,
        };
        let kind = Envelope::read(&incoming.properties, &incoming.routing_key);
        let kind = kind.as_ref().map_or(&*incoming.routing_key, Envelope::kind);
        consumer.telemetry.returned(kind, outcome);
        consumer.account.settled(Stage::Held, End { outcome, gave_back: GaveBack::Unstarted });
        return;
    };
    let (envelope, unfit) = match Envelope::read(&incoming.properties, &incoming.routing_key) {
        Ok(envelope) => (envelope, None),
        Err(error) => (Envelope::new(incoming.routing_key.clone()), Some(Ack::poison(error.to_string()))),
    };
    let readable = unfit.is_none();
    let redeliveries = hop::redeliveries(incoming.redelivered, &incoming.properties.headers);
    let mut facts = Facts { attempt: envelope.attempt(), unfit, has_key: false, redeliveries };
    let cancel = consumer.phase.cancel.child_token();
    let delivered = Arc::new(Delivered {
        queue: Arc::clone(&consumer.queue),
        consumer: Arc::clone(&consumer.name),
        exchange: incoming.exchange,
        routing_key: incoming.routing_key,
        redelivered: incoming.redelivered,
        envelope,
        properties: incoming.properties,
        body: incoming.body,
    });
    let context = Context::new(delivered, Arc::clone(&consumer.scope), cancel.clone());
    let claim = match &consumer.claims {
        Some(claims) if readable => claims.of(&context, &mut facts),
        _ => None,
    };
    let span = span::processing(&context);
    let driver = Driver {
        consumer,
        origin,
        tag,
        context,
        readable,
        claim,
        cancel,
        slot: Some(slot),
        span,
        stage: Stage::Starting,
        end: None,
        handled_for: None,
        gave_back: None,
    };
    driver.run(facts).await;
}

impl Drop for Driver {
    fn drop(&mut self) {
        let end = self.end.take().unwrap_or_else(|| {
            // A panic that nothing caught, or the end of the runtime: the delivery must neither stay out nor count for ever.
            let outcome = match self.origin.channel.settle(self.tag, Verdict::Requeue) {
                Settled::Done => Outcome::Requeued,
                Settled::Gone => Outcome::Lost,
            };
            End { outcome, gave_back: GaveBack::Failed }
        });
        // Last of all: whoever waits for rest finds everything counted.
        self.consumer.account.settled(self.stage, end);
    }
}

impl Driver {
    async fn run(mut self, facts: Facts) {
        let (mut machine, mut step) = Machine::start(self.consumer.rules, facts);
        let mut error = None;
        let outcome = loop {
            self.tell_plan(&machine, error.take());
            if let Some(note) = step.note {
                self.consumer.telemetry.note(&self.context, note);
                if matches!(note, Note::MoveAbandoned(_)) {
                    self.gave_back = Some(GaveBack::Failed);
                }
            }
            if !matches!(step.effect, Effect::Claim | Effect::Run) {
                // Only handlers take a slot; what waits or moves does not keep others from running.
                self.slot = None;
            }
            let event = match step.effect {
                Effect::Done(outcome) => break outcome,
                Effect::Claim => {
                    let span = self.span.clone();
                    self.claim().instrument(span).await
                }
                Effect::Run => self.handle().await,
                Effect::Wait { delay, jitter } => {
                    self.enter(Stage::Waiting);
                    self.wait(delay, jitter).await
                }
                Effect::Move(copy) => {
                    self.enter(Stage::Settling);
                    self.publish(&copy).await
                }
                Effect::Confirm => {
                    self.enter(Stage::Settling);
                    self.confirm().await
                }
                Effect::Release => {
                    self.enter(Stage::Settling);
                    self.release().await
                }
                Effect::Ack => {
                    self.enter(Stage::Settling);
                    Event::Settled(self.origin.channel.settle(self.tag, Verdict::Ack))
                }
                Effect::Requeue => {
                    self.enter(Stage::Settling);
                    Event::Settled(self.origin.give_back(self.tag, &self.consumer.phase).await)
                }
            };
            if self.consumer.phase.closing.is_cancelled() {
                machine.close();
            }
            if self.cancel.is_cancelled() {
                machine.cancel();
            }
            if self.origin.lost.is_cancelled() {
                machine.lose_channel();
            }
            if let Event::Returned { ack: Ack::Retry { reason, .. }, .. } = &event
                && !self.span.is_none()
            {
                error = Some(reason.clone());
            }
            step = machine.on(event);
        };
        self.end = Some(End { outcome, gave_back: self.gave_back() });
        self.consumer.telemetry.settled(&Settlement { context: &self.context, outcome, handled_for: self.handled_for });
    }

    /// Ends the span at the decision: what is waited for after it is not part of it.
    fn tell_plan(&mut self, machine: &Machine, error: Option<String>) {
        if self.span.is_none() {
            return;
        }
        if let Some(plan) = machine.plan() {
            let reason = plan.reason.map(ToString::to_string).or(error);
            span::decided(&std::mem::replace(&mut self.span, Span::none()), plan.outcome, plan.wait, reason.as_deref());
        }
    }

    fn gave_back(&self) -> GaveBack {
        self.gave_back.unwrap_or_else(|| match (self.consumer.phase.closing.is_cancelled(), self.handled_for) {
            (true, None) => GaveBack::Unstarted,
            (true, Some(_)) => GaveBack::Waiting,
            (false, _) => GaveBack::Failed,
        })
    }

    fn enter(&mut self, stage: Stage) {
        self.consumer.account.moved(self.stage, stage);
        self.stage = stage;
    }

    async fn claim(&self) -> Event {
        let Some(claim) = &self.claim else {
            return Event::StoreUnreachable;
        };
        match claim.claim().await {
            Ok(claim) => Event::Claimed(claim),
            Err(error) => {
                tracing::warn!(consumer = %self.consumer.name, %error, "a message could not be claimed; it goes back");
                Event::StoreUnreachable
            }
        }
    }

    async fn confirm(&self) -> Event {
        let Some(claim) = &self.claim else {
            return Event::Confirmed(None);
        };
        match claim.confirm().await {
            Ok(fenced) => Event::Confirmed(Some(fenced)),
            Err(error) => {
                tracing::error!(
                    consumer = %self.consumer.name,
                    id = self.context.envelope().id(),
                    %error,
                    "a handled message could not be marked: a duplicate of it would run"
                );
                Event::Confirmed(None)
            }
        }
    }

    async fn release(&self) -> Event {
        if let Some(claim) = &self.claim {
            claim.release().await;
        }
        Event::Released
    }

    async fn wait(&mut self, delay: Duration, jitter: f64) -> Event {
        let delay = self.consumer.jitter.apply(delay, jitter);
        tokio::select! {
            biased;
            () = self.consumer.phase.closing.cancelled() => {
                self.gave_back = Some(GaveBack::Waiting);
                Event::WaitEnded
            }
            () = self.origin.lost.cancelled() => Event::WaitEnded,
            () = tokio::time::sleep(delay) => Event::Elapsed,
        }
    }

    /// Runs the handler in this task, so that whatever it does, panics included, ends in an event.
    async fn handle(&mut self) -> Event {
        let run = self.consumer.account.began(self.stage, self.context.envelope().id());
        let started = Instant::now();
        let invoke = self.consumer.registration.invoke;
        let context = self.context.clone();
        // Inside the future, since the handler's first steps may panic too.
        let call = AssertUnwindSafe(async move { invoke(context).await }).catch_unwind();
        let mut call = Box::pin(inside::a_handler_of(&self.consumer, call).instrument(self.span.clone()));
        let lease = async {
            match &self.claim {
                Some(claim) => claim.renew_until_lost().await,
                None => std::future::pending().await,
            }
        };
        let deadline = async {
            match self.consumer.registration.spec.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let watch = async {
            lease.await;
            // The handler is told, and may still end by itself; what it returns no longer counts.
            self.cancel.cancel();
            std::future::pending::<()>().await;
        };
        let mut given_up = false;
        let event = tokio::select! {
            biased;
            returned = &mut call => match returned {
                Ok(ack) => Event::Returned { ack, age: self.age() },
                Err(payload) => {
                    let ack = Ack::retry(format!("the handler panicked: {}", panic_text(payload)));
                    Event::Returned { ack, age: self.age() }
                }
            },
            () = self.consumer.phase.abandon.cancelled() => {
                given_up = true;
                Event::Interrupted
            }
            () = deadline => {
                let timeout = self.consumer.registration.spec.timeout.unwrap_or_default();
                let ack = Ack::retry(format!("the handler took longer than {timeout:?}"));
                Event::Returned { ack, age: self.age() }
            }
            () = watch => Event::Interrupted,
        };
        self.handled_for = Some(started.elapsed());
        self.consumer.account.ended(run);
        self.stage = Stage::Settling;
        if given_up {
            self.consumer.account.gave_up();
            self.gave_back = Some(GaveBack::Abandoned);
        } else if self.consumer.phase.cancel.is_cancelled() {
            self.gave_back = Some(GaveBack::Stopped);
        }
        // What the handler left behind may panic too, and a panic here would leave the delivery unsettled.
        match std::panic::catch_unwind(AssertUnwindSafe(move || drop(call))) {
            Ok(()) => event,
            Err(payload) => {
                let ack = Ack::retry(format!("the handler panicked when it was dropped: {}", panic_text(payload)));
                Event::Returned { ack, age: self.age() }
            }
        }
    }

    fn age(&self) -> Option<Duration> {
        self.context.envelope().age(SystemTime::now())
    }

    async fn publish(&self, copy: &Move) -> Event {
        let original = hop::Original {
            queue: &self.consumer.queue,
            properties: self.context.properties(),
            body: self.context.body(),
            readable: self.readable,
        };
        let link = &self.consumer.publish;
        let publish = async {
            match link.publish(original.copy(copy, Remarks::Full), Lane::Hop).await {
                Err(PublishError::HeadersTooLarge { size, limit }) => {
                    tracing::warn!(
                        consumer = %self.consumer.name, size, limit, reason = copy.reason.as_ref().map(tracing::field::display),
                        "the headers leave no room for remarks: the copy goes without them"
                    );
                    link.publish(original.copy(copy, Remarks::Spare), Lane::Hop).await
                }
                published => published,
            }
        };
        let published = tokio::select! {
            biased;
            published = publish => published,
            () = self.consumer.phase.abandon.cancelled() => return Event::MoveFailed,
        };
        match published {
            Ok(Routing::Routed) => Event::Moved,
            Ok(Routing::Returned { text }) => {
                let queue = hop::target(&self.consumer.queue, copy.target);
                tracing::warn!(consumer = %self.consumer.name, queue, text, "a queue is missing: the copy was returned");
                // A source queue that is gone ends the subscription, and is declared with the next one.
                if copy.target != Target::Source {
                    tokio::select! {
                        biased;
                        () = self.consumer.mend() => {}
                        () = self.consumer.phase.abandon.cancelled() => {}
                    }
                }
                Event::Unroutable
            }
            Err(PublishError::Refused { why }) => {
                tracing::debug!(consumer = %self.consumer.name, why, "a copy could not be sent yet");
                Event::MoveRefused
            }
            Err(error) => {
                tracing::warn!(consumer = %self.consumer.name, %error, "a copy did not arrive");
                Event::MoveFailed
            }
        }
    }
}
