//! What only a whole application can know to be wrong.

use std::collections::BTreeMap;

use crate::{
    handler::{Requirements, Scope},
    registry::Registration,
};

/// Everything that is wrong, found before the first connection.
pub(super) fn problems(consumers: &[Registration], scope: &Scope) -> Vec<String> {
    let mut problems = Vec::new();
    if consumers.is_empty() {
        problems.push(
            "there is no consumer: put `#[acemq::consumer(queue = \"…\")]` on a function; if they stand in another crate, \
             name it in this one with `use that_crate as _;`, or the linker drops them"
                .to_owned(),
        );
    }
    let mut by_queue: BTreeMap<&str, Vec<&Registration>> = BTreeMap::new();
    for consumer in consumers {
        by_queue.entry(consumer.spec.queue).or_default().push(consumer);
        for error in consumer.spec.validate() {
            problems.push(format!(
                "consumer `{}` ({}:{}): {error}",
                consumer.name, consumer.location.file, consumer.location.line
            ));
        }
        let mut requirements = Requirements::default();
        (consumer.requires)(&mut requirements);
        for requirement in requirements.as_slice() {
            if !scope.meets(requirement) {
                problems.push(format!(
                    "consumer `{}` ({}:{}) takes `State<{}>`, which nobody provides: add `App::state(…)`",
                    consumer.name, consumer.location.file, consumer.location.line, requirement.type_name,
                ));
            }
        }
    }
    for (queue, consumers) in by_queue {
        if let [first, .., last] = consumers.as_slice() {
            problems.push(format!(
                "queue `{queue}` has {} consumers, such as `{}` ({}:{}) and `{}` ({}:{}): each message goes to one of them \
                 by chance; let one consumer take the queue, or give each a queue of its own",
                consumers.len(),
                first.name,
                first.location.file,
                first.location.line,
                last.name,
                last.location.file,
                last.location.line,
            ));
        }
    }
    problems
}
