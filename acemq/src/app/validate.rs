//! What only a whole application can know to be wrong.

use std::collections::BTreeMap;

use super::App;
use crate::{
    handler::{Requirements, Scope},
    health,
    policy::render,
    registry::{Registration, Scoped, SpecError},
    topology::{dead_letter_queue, parking_queue, rung_queue},
};

/// Everything that is wrong, found before the first connection.
pub(super) fn problems(app: &App, consumers: &[Registration]) -> Vec<String> {
    let mut problems = Vec::new();
    problems.extend(missing(app.expected, consumers));
    for consumer in consumers {
        problems.extend(settings(consumer, consumers));
        problems.extend(state(consumer, &app.scope));
    }
    problems.extend(shared_queues(consumers));
    problems.extend(shared_names(consumers));
    problems.extend(forgotten(consumers));
    problems.extend(parts_of_the_health(app));
    problems
}

/// A consumer, and where to find it.
fn place(consumer: &Registration) -> String {
    format!("`{}` ({}:{})", consumer.name, consumer.location.file, consumer.location.line)
}

fn missing(expected: Option<usize>, consumers: &[Registration]) -> Option<String> {
    if consumers.is_empty() {
        return Some(
            "there is no consumer: put `#[acemq::consumer(queue = \"…\")]` on a function; if they stand in another crate, \
             name it in this one with `use that_crate as _;`, or the linker drops them"
                .to_owned(),
        );
    }
    let (expected, found) = (expected?, consumers.len());
    let names: Vec<&str> = consumers.iter().map(|consumer| consumer.name).collect();
    let remedy = if found < expected {
        "if the others stand in another crate, name it in this one with `use that_crate as _;`, or the linker drops them"
    } else {
        "set the new number, so that the next one that is missing is noticed"
    };
    (found != expected).then(|| {
        format!(
            "`App::expect_consumers({expected})`, but the number of consumers is {found} ({}): {remedy}",
            names.join(", ")
        )
    })
}

/// What is wrong with the settings of a consumer that was registered by hand; the attribute lets none of it compile.
fn settings(consumer: &Registration, consumers: &[Registration]) -> Vec<String> {
    let mut problems = Vec::new();
    for error in consumer.spec.validate() {
        let owner = consumers.iter().find(|owner| derives(owner, consumer.spec.queue));
        problems.push(match owner {
            Some(owner) if error == SpecError::QueueDerived => format!(
                "consumer {} takes queue `{}`, which acemq declares for consumer {}: name another queue",
                place(consumer),
                consumer.spec.queue,
                place(owner),
            ),
            _ => format!("consumer {}: {error}", place(consumer)),
        });
    }
    problems
}

/// Whether this queue is one that acemq declares beside the consumer's own.
fn derives(owner: &Registration, queue: &str) -> bool {
    let own = owner.spec.queue;
    queue == dead_letter_queue(own)
        || queue == parking_queue(own)
        || owner.spec.retry.broker_rungs().any(|delay| queue == rung_queue(own, delay))
}

fn state(consumer: &Registration, scope: &Scope) -> Vec<String> {
    let mut requirements = Requirements::default();
    (consumer.requires)(&mut requirements);
    let missing = requirements.as_slice().iter().filter(|requirement| !scope.meets(requirement));
    missing
        .map(|requirement| {
            format!(
                "consumer {} takes `State<{}>`, which nobody provides: add `App::state(…)`",
                place(consumer),
                requirement.type_name,
            )
        })
        .collect()
}

/// The consumers that have something in common, by what it is.
fn alike<'a, K: Ord>(
    consumers: &'a [Registration],
    key: impl Fn(&'a Registration) -> K,
) -> impl Iterator<Item = (K, Vec<&'a Registration>)> {
    let mut groups: BTreeMap<K, Vec<&Registration>> = BTreeMap::new();
    for consumer in consumers {
        groups.entry(key(consumer)).or_default().push(consumer);
    }
    groups.into_iter().filter(|(_, group)| group.len() > 1)
}

fn both(consumers: &[&Registration]) -> String {
    let places: Vec<String> = consumers.iter().map(|consumer| place(consumer)).collect();
    match places.as_slice() {
        [first, second] => format!("{first} and {second}"),
        [first, .., last] => format!("such as {first} and {last}"),
        other => other.concat(),
    }
}

fn shared_queues(consumers: &[Registration]) -> Vec<String> {
    alike(consumers, |consumer| consumer.spec.queue)
        .map(|(queue, group)| {
            format!(
                "queue `{queue}` has {} consumers, {}: each message goes to one of them by chance; let one consumer take the \
                 queue, or give each a queue of its own",
                group.len(),
                both(&group),
            )
        })
        .collect()
}

fn shared_names(consumers: &[Registration]) -> Vec<String> {
    alike(consumers, |consumer| consumer.name)
        // One consumer that is listed twice shares its queue with itself, which is said already.
        .filter(|(_, group)| group.iter().any(|consumer| Some(consumer.spec.queue) != group.first().map(|first| first.spec.queue)))
        .map(|(name, group)| {
            format!(
                "{} consumers are named `{name}`, {}: logs, health and metrics cannot tell them apart; give each a `name` of \
                 its own",
                group.len(),
                both(&group),
            )
        })
        .collect()
}

/// Consumers that share their keys with one whose copies outlast what they remember.
fn forgotten(consumers: &[Registration]) -> Vec<String> {
    let shared = |consumer: &Registration| consumer.spec.idempotent.filter(|settings| settings.scope == Scoped::Shared);
    let mut problems = Vec::new();
    for consumer in consumers {
        let Some(settings) = shared(consumer) else { continue };
        let others = consumers.iter().filter(|other| other.spec.queue != consumer.spec.queue);
        let longest = others
            .filter(|other| shared(other).is_some_and(|theirs| theirs.store == settings.store))
            .filter_map(|other| Some((other.spec.retry.longest_life()?, other)))
            .max_by_key(|(life, _)| *life);
        if let Some((life, other)) = longest.filter(|(life, _)| *life > settings.retention) {
            problems.push(format!(
                "consumer {} remembers what it handled for {}, but shares its keys with {}, whose retries take {}: a copy that \
                 waits there would be handled again; lengthen its `retention`, or use `scope = queue`",
                place(consumer),
                render(settings.retention),
                place(other),
                render(life),
            ));
        }
    }
    problems
}

fn parts_of_the_health(app: &App) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, contributor) in app.contributors.iter().enumerate() {
        let name = contributor.name;
        let taken = name == health::CONNECTION || name == health::SHUTDOWN || name.starts_with(health::CONSUMER);
        if taken || app.contributors.iter().take(at).any(|other| other.name == name) {
            problems.push(format!("a part of the health is named `{name}`, and so is another one"));
        }
    }
    problems
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
