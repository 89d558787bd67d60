//! One consumer, from its first subscription to its last settlement, over every loss of its channel.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::StreamExt;
use tokio::{sync::watch, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    account::Account,
    backoff::Backoff,
    claims::Claims,
    driver::drive,
    gate::Gate,
    link::{self, Incarnation, Link},
    machine::{ClaimRules, Rules},
    origin::Origin,
};
use crate::{
    handler::Scope,
    policy::Jitter,
    registry::{Registration, RungKind},
    telemetry::ConsumerTelemetry,
    topology::{self, Declaration, DeclareError},
    transport::{Subscribe, Subscription},
};

/// A subscription that lived this long was a success, and its loss is met with a try at once.
const SETTLED_AFTER: Duration = Duration::from_secs(10);

/// How often at most a consumer declares again what a move found missing.
const MEND_EVERY: Duration = Duration::from_secs(10);

/// How often a consumer that gets nothing looks whether its queue is still there.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How long the deliveries of a closing channel may take to come to rest after their handlers were abandoned.
const REST: Duration = Duration::from_secs(1);

/// The steps of a shutdown, each of which implies those before it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Phase {
    /// Nothing new is taken, nothing waits.
    pub(crate) closing: CancellationToken,
    /// Handlers are told to stop.
    pub(crate) cancel: CancellationToken,
    /// Handlers are no longer waited for.
    pub(crate) abandon: CancellationToken,
}

impl Phase {
    /// A phase that follows another one and can also go ahead of it.
    pub(crate) fn child(&self) -> Self {
        Self {
            closing: self.closing.child_token(),
            cancel: self.cancel.child_token(),
            abandon: self.abandon.child_token(),
        }
    }
}

/// One consumer of the running application.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) name: Arc<str>,
    pub(crate) queue: Arc<str>,
    pub(crate) registration: Registration,
    pub(crate) rules: Rules,
    pub(crate) scope: Arc<Scope>,
    pub(crate) claims: Option<Claims>,
    pub(crate) gate: Gate,
    pub(crate) account: Account,
    pub(crate) jitter: Jitter,
    pub(crate) phase: Phase,
    pub(crate) telemetry: ConsumerTelemetry,
    pub(crate) publish: Link,
    consume: Link,
    plan: Vec<Declaration>,
    life: watch::Sender<Life>,
    last: Mutex<Last>,
    /// The deliveries on their way, those of a lost channel among them: their handlers run on, and a close waits for them.
    deliveries: TaskTracker,
    /// When what it needs was last declared because something was missing; held while it is being declared.
    mended: tokio::sync::Mutex<Option<Instant>>,
}

/// Whether the consumer receives messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Life {
    /// Not yet.
    Starting,
    /// The broker has it as a consumer.
    Subscribed,
    /// It had, or could not have it; another try follows.
    Degraded {
        /// Why.
        why: String,
    },
    /// It has ended, and all of its deliveries are settled or given back.
    Closed,
}

/// What was last seen of a consumer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Last {
    pub(crate) error: Option<String>,
    /// How often it subscribed again.
    pub(crate) resubscribed: u64,
}

/// What a consumer is made of.
pub(crate) struct Parts {
    pub(crate) registration: Registration,
    pub(crate) rungs: RungKind,
    pub(crate) crash_limit: u32,
    pub(crate) scope: Arc<Scope>,
    pub(crate) claims: Option<Claims>,
    pub(crate) phase: Phase,
    pub(crate) consume: Link,
    pub(crate) publish: Link,
}

/// A declaration that was refused, with its consumer.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) declaration: Declaration,
    pub(crate) error: DeclareError,
}

impl Consumer {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { registration, rungs, crash_limit, scope, claims, phase, consume, publish } = parts;
        let spec = registration.spec;
        let queue: Arc<str> = spec.queue.into();
        Self {
            name: registration.name.into(),
            rules: Rules {
                policy: spec.retry,
                crash_limit,
                claims: claims.as_ref().map(|claims| ClaimRules {
                    in_progress_delay: claims.settings().in_progress_delay,
                    no_id: claims.settings().no_id,
                }),
            },
            scope,
            claims,
            gate: Gate::new(spec.concurrency.min(spec.prefetch).max(1)),
            account: Account::new(ConsumerTelemetry::in_flight(&queue)),
            jitter: Jitter::random(),
            phase,
            telemetry: ConsumerTelemetry::new(&queue),
            publish,
            consume,
            plan: topology::plan(&spec, spec.rungs.unwrap_or(rungs)),
            life: watch::Sender::new(Life::Starting),
            last: Mutex::default(),
            deliveries: TaskTracker::new(),
            mended: tokio::sync::Mutex::default(),
            queue,
            registration,
        }
    }

    pub(crate) fn life(&self) -> watch::Receiver<Life> {
        self.life.subscribe()
    }

    pub(crate) fn last(&self) -> Last {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Declares everything that the consumer needs.
    pub(crate) async fn declare(&self, incarnation: &Incarnation) -> Result<(), Refusal> {
        for declaration in &self.plan {
            incarnation
                .connection
                .declare(declaration)
                .await
                .map_err(|error| Refusal { declaration: declaration.clone(), error })?;
        }
        Ok(())
    }

    /// Declares again what somebody deleted while the consumer was subscribed: without a place for it, a message that has to
    /// be set aside would go round for ever. A declaration that is refused leaves things as they are.
    pub(crate) async fn mend(&self) {
        // Whoever finds it locked is one of many that miss the same queue, and tries its move again in a moment.
        let Ok(mut mended) = self.mended.try_lock() else { return };
        if mended.is_some_and(|at| at.elapsed() < MEND_EVERY) {
            return;
        }
        let Some(incarnation) = self.consume.current() else { return };
        match self.declare(&incarnation).await {
            Ok(()) => tracing::warn!(consumer = %self.name, queue = %self.queue, "what was missing is declared again"),
            Err(Refusal { declaration, error }) => tracing::error!(
                consumer = %self.name,
                queue = %self.queue,
                "what is missing cannot be declared: {}",
                told(&declaration, &error)
            ),
        }
        *mended = Some(Instant::now());
    }

    /// Consumes until the application closes; whatever ends a subscription, another one follows.
    ///
    /// Before each subscription everything that it needs is declared, unless the start has done that already.
    pub(crate) async fn run(self: Arc<Self>, mut declared: bool) {
        let mut backoff = Backoff::new();
        while let Some(incarnation) = self.next_incarnation().await {
            let started = Instant::now();
            let ready = if declared { Ok(()) } else { self.declare(&incarnation).await };
            declared = false;
            let why = match ready {
                Ok(()) => match self.subscribe(&incarnation).await {
                    Ok(subscription) => self.consume(&incarnation, subscription).await,
                    Err(error) => Some(told(&self.wanted(), &error)),
                },
                Err(Refusal { declaration, error }) => Some(told(&declaration, &error)),
            };
            let Some(why) = why else { break };
            if started.elapsed() >= SETTLED_AFTER {
                backoff.reset();
            }
            self.degrade(why);
            let wait = backoff.next();
            tokio::select! {
                biased;
                () = self.phase.closing.cancelled() => break,
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.rest().await;
        self.life.send_replace(Life::Closed);
    }

    /// Waits until every delivery has come to its end, or for a moment once nobody waits for handlers any more.
    async fn rest(&self) {
        self.deliveries.close();
        let abandoned = async {
            self.phase.abandon.cancelled().await;
            tokio::time::sleep(REST).await;
        };
        tokio::select! {
            biased;
            () = self.deliveries.wait() => {}
            () = abandoned => {}
        }
    }

    async fn next_incarnation(&self) -> Option<Incarnation> {
        tokio::select! {
            biased;
            () = self.phase.closing.cancelled() => None,
            incarnation = self.consume.up() => incarnation,
        }
    }

    async fn subscribe(&self, incarnation: &Incarnation) -> Result<Subscription, DeclareError> {
        let wanted = Subscribe {
            queue: self.queue.to_string(),
            prefetch: self.registration.spec.prefetch.max(1),
            tag: format!("{}@{}", self.name, self.queue),
        };
        incarnation.connection.subscribe(&wanted).await
    }

    /// Takes deliveries until the subscription ends; says why, or nothing at a shutdown.
    async fn consume(self: &Arc<Self>, incarnation: &Incarnation, subscription: Subscription) -> Option<String> {
        let Subscription { mut deliveries, channel } = subscription;
        // A stream that a client library forgot to end must not leave a consumer that looks alive.
        let mut gone = std::pin::pin!(link::lost(&*incarnation.connection));
        let mut forgotten = std::pin::pin!(self.forgotten(incarnation));
        let lost = CancellationToken::new();
        let origin = Origin { channel, lost: lost.clone(), quiet: CancellationToken::new() };
        // However this ends, what waits for the channel must not wait on.
        let _lost = lost.clone().drop_guard();
        self.subscribed();
        let why = loop {
            let item = tokio::select! {
                biased;
                () = self.phase.closing.cancelled() => break None,
                item = deliveries.next() => item,
                why = &mut gone => break Some(why),
                why = &mut forgotten => break Some(why),
            };
            match item {
                Some(Ok(incoming)) => {
                    self.account.arrived();
                    let place = self.gate.queue();
                    self.deliveries.spawn(drive(Arc::clone(self), origin.clone(), incoming, place));
                }
                Some(Err(error)) => break Some(error.why),
                None => {
                    break Some("the broker cancelled the consumer: its queue was deleted, or it timed out".to_owned());
                }
            }
        };
        if let Some(why) = &why {
            lost.cancel();
            // Before the farewell to the channel, which may take its time.
            self.degrade(why.clone());
        } else {
            origin.channel.cancel().await;
            origin.quiet.cancel();
            // What the broker had already sent goes back, unseen by any handler.
            let mut rest = std::pin::pin!(deliveries.by_ref().take_until(gone));
            while let Some(Ok(incoming)) = rest.next().await {
                self.account.arrived();
                let place = self.gate.queue();
                self.deliveries.spawn(drive(Arc::clone(self), origin.clone(), incoming, place));
            }
        }
        drop(deliveries);
        if why.is_none() {
            self.rest().await;
        }
        // Of a lost connection there is no channel left to close, whatever its client library waits for.
        tokio::select! {
            biased;
            () = origin.channel.close() => {}
            _ = link::lost(&*incarnation.connection) => {}
        }
        why
    }

    /// Waits until the queue is gone. RabbitMQ does not say so where it deletes a queue that it finds down.
    async fn forgotten(&self, incarnation: &Incarnation) -> String {
        let queue = self.wanted();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let delivers = self.account.last_arrival().is_some_and(|at| at.elapsed() < LOOK_EVERY);
            if !delivers && let Err(error @ DeclareError::Missing { .. }) = incarnation.connection.declare(&queue).await
            {
                return error.to_string();
            }
        }
    }

    /// The queue to consume from, as something that has to be there.
    fn wanted(&self) -> Declaration {
        Declaration::QueueExists { name: self.queue.to_string() }
    }

    fn subscribed(&self) {
        let again = *self.life.borrow() != Life::Starting;
        if again {
            self.last.lock().unwrap_or_else(PoisonError::into_inner).resubscribed += 1;
            tracing::info!(consumer = %self.name, queue = %self.queue, "consuming again");
        }
        self.life.send_replace(Life::Subscribed);
    }

    fn degrade(&self, why: String) {
        let repeated = matches!(&*self.life.borrow(), Life::Degraded { why: before } if *before == why);
        if !repeated {
            tracing::warn!(consumer = %self.name, queue = %self.queue, why, "the consumer stopped; trying again");
        }
        self.last.lock().unwrap_or_else(PoisonError::into_inner).error = Some(why.clone());
        self.life.send_replace(Life::Degraded { why });
    }
}

/// What was refused, and the remedy.
fn told(wanted: &Declaration, error: &DeclareError) -> String {
    format!("{error}; {}", topology::remedy(wanted, error))
}
