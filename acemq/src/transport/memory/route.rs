//! Exchanges: which queues a routing key leads to.

use std::{collections::HashMap, sync::Arc};

use crate::topology::ExchangeKind;

/// The name of a queue, shared by everything that refers to it.
pub(super) type Name = Arc<str>;

/// An exchange with its bindings.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) kind: ExchangeKind,
    /// By routing key or pattern; queues in the order of their binding.
    bindings: HashMap<String, Vec<Name>>,
}

impl Exchange {
    pub(super) fn new(kind: ExchangeKind) -> Self {
        Self { kind, bindings: HashMap::new() }
    }

    /// Binds a queue; binding it twice with one key is binding it once.
    pub(super) fn bind(&mut self, key: &str, queue: &Name) {
        let queues = self.bindings.entry(key.to_owned()).or_default();
        if !queues.contains(queue) {
            queues.push(Arc::clone(queue));
        }
    }

    /// Forgets every binding of a queue.
    pub(super) fn unbind_all(&mut self, queue: &str) {
        self.bindings.retain(|_, queues| {
            queues.retain(|name| &**name != queue);
            !queues.is_empty()
        });
    }

    /// Adds the queues that a routing key leads to, each once.
    pub(super) fn route(&self, key: &str, found: &mut Vec<Name>) {
        let mut add = |queues: &[Name]| {
            for queue in queues {
                if !found.contains(queue) {
                    found.push(Arc::clone(queue));
                }
            }
        };
        match self.kind {
            ExchangeKind::Direct => {
                if let Some(queues) = self.bindings.get(key) {
                    add(queues);
                }
            }
            ExchangeKind::Fanout => self.bindings.values().for_each(|queues| add(queues)),
            ExchangeKind::Topic => {
                for (pattern, queues) in &self.bindings {
                    if matches(pattern, key) {
                        add(queues);
                    }
                }
            }
        }
    }

    /// Each binding as key and queue, in no order.
    pub(super) fn bindings(&self) -> impl Iterator<Item = (&str, &Name)> {
        self.bindings.iter().flat_map(|(key, queues)| queues.iter().map(move |queue| (key.as_str(), queue)))
    }
}

/// Whether a topic pattern covers a routing key: `*` is one word, `#` any number of them, none included.
pub(super) fn matches(pattern: &str, key: &str) -> bool {
    let (mut pattern, mut key) = (words(pattern), words(key));
    // Where to go on when the guess for the last `#` was too short: behind it, and one word further on.
    let mut retry = None;
    loop {
        let mut after = pattern.clone();
        match after.next() {
            Some("#") => {
                retry = Some((after.clone(), key.clone()));
                pattern = after;
                continue;
            }
            Some(wanted) => {
                let mut rest = key.clone();
                if rest.next().is_some_and(|word| wanted == "*" || wanted == word) {
                    (pattern, key) = (after, rest);
                    continue;
                }
            }
            None if key.clone().next().is_none() => return true,
            None => {}
        }
        let Some((behind, from)) = retry.as_mut() else {
            return false;
        };
        if from.next().is_none() {
            return false;
        }
        (pattern, key) = (behind.clone(), from.clone());
    }
}

/// The words of a key; the empty key has none, as on RabbitMQ.
fn words(key: &str) -> impl Iterator<Item = &str> + Clone {
    key.split('.').filter(move |_| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_pattern_covers_what_rabbitmq_says_it_covers() {
        let table = [
            ("order.#", "order", true),
            ("order.#", "order.placed", true),
            ("order.#", "order.placed.late", true),
            ("order.#", "orders", false),
            ("order.*", "order", false),
            ("order.*", "order.placed", true),
            ("order.*", "order.placed.late", false),
            ("*.placed", "order.placed", true),
            ("#", "", true),
            ("#", "a.b.c", true),
            ("*", "", false),
            ("*", "a", true),
            ("", "", true),
            ("", "a", false),
            ("#.c", "a.b.c", true),
            ("#.c", "c", true),
            ("#.c", "a.c.b", false),
            ("a.#.c", "a.c", true),
            ("a.#.c", "a.b.b.c", true),
            ("a.#.c", "a.b", false),
            ("#.b.#", "a.b.c", true),
            ("#.b.#", "a.c", false),
            ("#.#", "", true),
            ("#.a.#.b", "x.a.y.a.z.b", true),
            ("#.*", "a", true),
            ("#.*", "", false),
            ("a.*.c", "a..c", true),
            ("a.b", "a.b", true),
        ];
        for (pattern, key, expected) in table {
            assert_eq!(matches(pattern, key), expected, "{pattern} on {key}");
        }
    }
}
