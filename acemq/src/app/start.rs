//! From an application that is put together to one that runs.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::{App, OnRefusal, config, running::Running, validate};
use crate::{
    Error, Publisher,
    engine::{Claims, Consumer, Life, Link, Parts, Phase, Refusal},
    idempotency::{ClaimStore, MemoryStore},
    policy::{Place, render},
    registry::{Registration, RungKind},
    topology,
    transport::{Role, Transport},
};

pub(super) async fn start(mut app: App) -> Result<Running, Error> {
    let registrations = app.registrations();
    let mut problems = validate::problems(&registrations, &app.scope);
    let claims = claims(&app, &registrations, &mut problems);
    if !problems.is_empty() {
        return Err(Error::Config(problems));
    }
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
    let publisher = Publisher::new(publish.clone(), app.origin.take().unwrap_or_else(origin));
    app.scope.insert(publisher.clone());
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
    let running = Running::new(consumers, consume, publish, publisher, phase, app.drain_timeout, app.grace);
    match launch(&running, app.refusal).await {
        Ok(()) => Ok(running),
        Err(error) => {
            // Whatever had begun ends before the error is seen.
            let _ = running.close_or(std::future::ready(())).await;
            Err(error)
        }
    }
}

/// Declares everything of every consumer, and only then lets the first one subscribe.
async fn launch(running: &Running, on_refusal: OnRefusal) -> Result<(), Error> {
    let mut refused = Vec::new();
    for consumer in running.consumers() {
        let Some(incarnation) = running.consume_link().up().await else {
            break;
        };
        if let Err(Refusal { declaration, error }) = consumer.declare(&incarnation).await {
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
    let tasks: &TaskTracker = running.tasks();
    for consumer in running.consumers() {
        tasks.spawn(Arc::clone(consumer).run());
    }
    tasks.close();
    let mut failed = Vec::new();
    for consumer in running.consumers() {
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
