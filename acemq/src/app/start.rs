//! From an application that is put together to one that runs.

use std::{iter, sync::Arc};

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

#[cfg(feature = "actuator")]
use super::actuator::Bound;
use super::{
    App, OnRefusal, config,
    handle::HandleSlot,
    running::{Inner, Running, Services},
    validate,
};
use crate::{
    Error, Publisher,
    engine::{Claims, Consumer, Life, Link, Parts, Phase, Refusal},
    idempotency::{ClaimStore, MemoryStore},
    policy::{Place, render},
    registry::{Registration, RungKind},
    telemetry::names,
    topology,
    transport::{Role, Transport},
};

pub(super) async fn start(mut app: App) -> Result<Running, Error> {
    let registrations = app.registrations();
    let mut problems = validate::problems(&app, &registrations);
    let claims = claims(&app, &registrations, &mut problems);
    if !problems.is_empty() {
        return Err(Error::Config(problems));
    }
    #[cfg(feature = "actuator")]
    let actuator = std::mem::take(&mut app.actuator).bind()?;
    let transport: Arc<dyn Transport> = match app.transport.take() {
        Some(transport) => transport,
        None => config::transport(app.url.as_deref().unwrap_or(config::DEFAULT_URL))?,
    };
    for registration in &registrations {
        announce(registration);
        warn_of_classic_rungs(registration, app.rungs);
    }
    let consume = Link::open(Arc::clone(&transport), Role::Consume).await?;
    let publish = match Link::open(Arc::clone(&transport), Role::Publish).await {
        Ok(publish) => publish,
        Err(error) => {
            consume.close().await;
            return Err(error.into());
        }
    };
    names::describe();
    let publisher = Publisher::new(publish.clone(), app.origin.take().unwrap_or_else(origin));
    app.scope.insert(publisher.clone());
    let slot = HandleSlot::default();
    app.scope.insert(slot.clone());
    let scope = Arc::new(std::mem::take(&mut app.scope));
    let phase = Phase::default();
    let consumers: Vec<Arc<Consumer>> = registrations
        .into_iter()
        .zip(claims)
        .map(|(registration, claims)| {
            Arc::new(Consumer::new(Parts {
                registration,
                rungs: app.rungs,
                crash_limit: app.crash_limit,
                scope: Arc::clone(&scope),
                claims,
                phase: phase.child(),
                consume: consume.clone(),
                publish: publish.clone(),
            }))
        })
        .collect();
    let running = Running::new(Inner {
        consumers,
        consume,
        publish,
        publisher,
        phase,
        tasks: TaskTracker::new(),
        services: Services::default(),
        contributors: app.contributors,
        hooks: app.hooks,
        runtime: tokio::runtime::Handle::current(),
        drain_timeout: app.drain_timeout,
        grace: app.grace,
        #[cfg(feature = "actuator")]
        started: std::time::SystemTime::now(),
        #[cfg(feature = "actuator")]
        actuator: actuator.as_ref().map(Bound::address),
        drained: watch::Sender::new(None),
    });
    slot.fill(&running);
    #[cfg(feature = "actuator")]
    serve(actuator, &running);
    match launch(running.inner(), app.refusal).await {
        Ok(()) => {
            running.inner().hooks.started(&running).await;
            Ok(running)
        }
        Err(error) => {
            // Whatever had begun ends before the error is seen, and nobody waits for handlers.
            running.hurry();
            running.hurry();
            let _ = running.close().await;
            Err(error)
        }
    }
}

/// Serves health and metrics, and puts metrics together if they are to be shown.
#[cfg(feature = "actuator")]
fn serve(bound: Option<Bound>, running: &Running) {
    let services = &running.inner().services;
    if let Some(bound) = bound {
        bound.serve(running, services);
    }
    if crate::actuator::installed().is_some() {
        services.tasks.spawn(crate::actuator::upkeep(services.end.clone()));
    }
}

/// Declares everything of every consumer, and only then lets the first one subscribe.
async fn launch(running: &Inner, on_refusal: OnRefusal) -> Result<(), Error> {
    let mut refused = Vec::new();
    let mut declared = Vec::new();
    for consumer in &running.consumers {
        let Some(incarnation) = running.consume.up().await else {
            break;
        };
        let answer = consumer.declare(&incarnation).await;
        declared.push(answer.is_ok());
        if let Err(Refusal { declaration, error }) = answer {
            let remedy = topology::remedy(&declaration, &error);
            refused.push(format!("consumer `{}`: {error}; {remedy}", consumer.name));
        }
    }
    if !refused.is_empty() {
        match on_refusal {
            OnRefusal::Fail => return Err(Error::Declare(refused)),
            OnRefusal::Degrade => refused.iter().for_each(|refusal| tracing::error!("{refusal}")),
        }
    }
    let tasks: &TaskTracker = &running.tasks;
    for (consumer, declared) in running.consumers.iter().zip(declared.into_iter().chain(iter::repeat(false))) {
        tasks.spawn(Arc::clone(consumer).run(declared));
    }
    tasks.close();
    let mut failed = Vec::new();
    for consumer in &running.consumers {
        let mut life = consumer.life();
        if let Ok(life) = life.wait_for(|life| *life != Life::Starting).await
            && let Life::Degraded { why } = &*life
        {
            failed.push(format!("consumer `{}` on queue `{}`: {why}", consumer.name, consumer.queue));
        }
    }
    if failed.is_empty() || on_refusal == OnRefusal::Degrade { Ok(()) } else { Err(Error::Declare(failed)) }
}

/// The claims of each consumer, in their order.
fn claims(app: &App, registrations: &[Registration], problems: &mut Vec<String>) -> Vec<Option<Claims>> {
    let mut default: Option<Arc<dyn ClaimStore>> = app.default_store.clone();
    registrations
        .iter()
        .map(|registration| {
            let settings = registration.spec.idempotent?;
            let store = if let Some(name) = settings.store {
                let Some(store) = app.stores.get(name) else {
                    problems.push(format!(
                        "consumer `{}` keeps its claims in store `{name}`, which nobody provides: add \
                         `App::idempotency_named(\"{name}\", …)`",
                        registration.name
                    ));
                    return None;
                };
                Arc::clone(store)
            } else {
                Arc::clone(default.get_or_insert_with(|| {
                    tracing::warn!(
                        "claims are kept in memory: duplicates that another process or an earlier run of this one has \
                         handled are not recognised; give the application a store with `App::idempotency`"
                    );
                    Arc::new(MemoryStore::new())
                }))
            };
            Some(Claims::new(store, settings))
        })
        .collect()
}

fn announce(registration: &Registration) {
    let spec = &registration.spec;
    let schedule: Vec<String> = spec
        .retry
        .schedule()
        .take(8)
        .map(|step| match step.place {
            Place::Consumer => render(step.delay),
            Place::Broker => format!("{} in the broker", render(step.delay)),
        })
        .collect();
    tracing::info!(
        consumer = registration.name,
        queue = spec.queue,
        at = format!("{}:{}", registration.location.file, registration.location.line),
        attempts = spec.retry.attempts().map_or_else(|| "without end".to_owned(), |attempts| attempts.to_string()),
        waits = schedule.join(", "),
        prefetch = spec.prefetch,
        concurrency = spec.concurrency,
        "found a consumer"
    );
}

fn warn_of_classic_rungs(registration: &Registration, default: RungKind) {
    let spec = &registration.spec;
    if spec.rungs.unwrap_or(default) == RungKind::Classic && spec.retry.broker_rungs().next().is_some() {
        tracing::warn!(
            consumer = registration.name,
            queue = spec.queue,
            "its retries wait in classic queues, as the other libraries of the family declare them: what waits is lost when \
             the broker is killed and, before a quorum queue, on an ordinary restart; `rungs = quorum` loses nothing"
        );
    }
}

fn origin() -> String {
    format!("acemq@{}", gethostname::gethostname().to_string_lossy())
}
