//! What a broker can do, by what it says of itself.

use super::filter::Greeting;
use crate::{envelope::Value, topology::Declaration};

/// RabbitMQ takes 128 MiB up to 3.13 and 16 MiB since 4.0, unless its `max_message_size` says otherwise.
pub(super) fn usual_max_size(greeting: &Greeting) -> Option<usize> {
    match version(greeting)? {
        (4.., _) => Some(16 << 20),
        _ => Some(128 << 20),
    }
}

/// What a declaration asks for and the broker is too old for. It would take some of it and do something else: RabbitMQ 3.7
/// makes a classic queue out of a quorum one.
pub(super) fn lacks(greeting: &Greeting, wanted: &Declaration) -> Option<String> {
    let Declaration::Queue { arguments, .. } = wanted else { return None };
    if arguments.get("x-queue-type").and_then(Value::as_text) != Some("quorum") {
        return None;
    }
    let expires = arguments.get("x-message-ttl").is_some();
    let version = version(greeting)?;
    let lacking = if version < (3, 8) {
        "has no quorum queues; use RabbitMQ 3.10 or later"
    } else if expires && version < (3, 10) {
        "has no quorum queues whose messages expire, which a wait in the broker needs; use RabbitMQ 3.10 or later, or set \
         `rungs = classic`"
    } else {
        return None;
    };
    Some(format!("RabbitMQ {} {lacking}", greeting.version))
}

/// Major and minor of a RabbitMQ; other brokers count otherwise.
fn version(greeting: &Greeting) -> Option<(u32, u32)> {
    if greeting.product != "RabbitMQ" {
        return None;
    }
    let mut parts = greeting.version.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(product: &str, version: &str) -> Greeting {
        Greeting { product: product.to_owned(), version: version.to_owned() }
    }

    fn queue(arguments: &[(&str, Value)]) -> Declaration {
        let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Declaration::Queue { name: "q".to_owned(), arguments }
    }

    #[test]
    fn a_broker_that_is_too_old_for_a_queue_is_told_with_the_remedy() {
        let kind = ("x-queue-type", Value::from("quorum"));
        let lifetime = ("x-message-ttl", Value::I64(1_000));
        let (quorum, rung) = (queue(std::slice::from_ref(&kind)), queue(&[kind, lifetime.clone()]));
        let old = greeting("RabbitMQ", "3.9.29");
        assert_eq!(lacks(&old, &quorum), None);
        let text = lacks(&old, &rung).unwrap();
        assert!(text.starts_with("RabbitMQ 3.9.29 has no quorum queues whose messages expire"), "{text}");
        assert!(text.ends_with("use RabbitMQ 3.10 or later, or set `rungs = classic`"), "{text}");
        let older = lacks(&greeting("RabbitMQ", "3.7.28"), &quorum).unwrap();
        assert_eq!(older, "RabbitMQ 3.7.28 has no quorum queues; use RabbitMQ 3.10 or later");
        for new_enough in [greeting("RabbitMQ", "3.10.0"), greeting("RabbitMQ", "4.0.5"), greeting("Another", "1.0")] {
            assert_eq!(lacks(&new_enough, &rung), None);
        }
        assert_eq!(lacks(&older_than_all(), &queue(&[lifetime])), None, "a classic queue is older than all of them");
    }

    fn older_than_all() -> Greeting {
        greeting("RabbitMQ", "2.8.7")
    }

    #[test]
    fn the_size_that_a_broker_takes_is_known_by_its_version() {
        assert_eq!(usual_max_size(&greeting("RabbitMQ", "3.13.7")), Some(128 << 20));
        assert_eq!(usual_max_size(&greeting("RabbitMQ", "4.1.0-beta.2")), Some(16 << 20));
        assert_eq!(usual_max_size(&greeting("LavinMQ", "2.0.0")), None);
        assert_eq!(usual_max_size(&greeting("RabbitMQ", "next")), None);
    }
}
