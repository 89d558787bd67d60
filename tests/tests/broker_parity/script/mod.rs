//! What is done to both brokers. Each script gives a record of what it saw.

mod declaring;
mod dying;
mod flowing;

use acemq::envelope::Value;
pub use declaring::*;
pub use dying::*;
pub use flowing::*;

type Record = Vec<String>;
type Arguments<'a> = &'a [(&'a str, Value)];

const TTL: &str = "x-message-ttl";
const DLX: &str = "x-dead-letter-exchange";
const DLRK: &str = "x-dead-letter-routing-key";
const STRATEGY: &str = "x-dead-letter-strategy";
const OVERFLOW: &str = "x-overflow";
const LENGTH: &str = "x-max-length";
const LIMIT: &str = "x-delivery-limit";
const TYPE: &str = "x-queue-type";
const KINDS: [&str; 2] = ["classic", "quorum"];

fn text(text: &str) -> Value {
    text.into()
}

/// The arguments of a queue of one kind whose dead go to another queue.
fn mortal(kind: &str, to: &str, more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let mut arguments = vec![(TYPE, text(kind)), (DLX, text("")), (DLRK, text(to))];
    arguments.extend_from_slice(more);
    arguments
}
