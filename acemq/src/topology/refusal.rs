//! A declaration that the broker refused, and what to do about it.

use super::{Declaration, names};

/// A declaration, a check or a subscription that the broker refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeclareError {
    /// 404: it does not exist.
    #[error("{object} does not exist")]
    Missing {
        /// The thing, such as ``queue `orders` ``.
        object: String,
    },
    /// 406: it exists with other properties.
    #[error("{object} exists with other properties: {text}")]
    Mismatch {
        /// The thing.
        object: String,
        /// The broker's words, which name the argument, the value there and the value wanted.
        text: String,
    },
    /// 403: the user may not.
    #[error("the user may not use {object}: {text}")]
    Denied {
        /// The thing.
        object: String,
        /// The broker's words, which name the permission.
        text: String,
    },
    /// Anything else that the broker answered, such as 405 for a queue of another connection.
    #[error("the broker refused {object}: {text}")]
    Refused {
        /// The thing.
        object: String,
        /// The broker's words.
        text: String,
    },
    /// No answer: the connection is gone or slow. Trying again on another one can help.
    #[error("the connection was lost while {object} was asked for: {why}")]
    Lost {
        /// The thing.
        object: String,
        /// The reason.
        why: String,
    },
}

/// One sentence that says what is there, what was wanted and what to do.
pub(crate) fn remedy(wanted: &Declaration, error: &DeclareError) -> String {
    match error {
        DeclareError::Missing { .. } => missing(wanted),
        DeclareError::Mismatch { text, .. } => mismatch(wanted, text),
        DeclareError::Denied { .. } => denied(wanted),
        DeclareError::Refused { .. } => {
            "read the broker's answer, correct the queue or the exchange, and start again".to_owned()
        }
        DeclareError::Lost { .. } => "check the connection to the broker, and start again".to_owned(),
    }
}

fn missing(wanted: &Declaration) -> String {
    match wanted {
        Declaration::QueueExists { name } => {
            format!("create `{name}`, or let acemq create it with `declare = quorum` on the consumer")
        }
        Declaration::Binding { exchange, .. } => {
            format!("create exchange `{exchange}` before the consumer starts, or correct its name in `bind`")
        }
        Declaration::Queue { .. } | Declaration::Exchange { .. } => "create it, and start again".to_owned(),
    }
}

fn mismatch(wanted: &Declaration, text: &str) -> String {
    let difference = difference(text).map(|found| format!("{found}; ")).unwrap_or_default();
    let what = match wanted {
        Declaration::Queue { name, .. } if is_rung(name) => {
            "a rung is either of the quorum kind (`rungs = quorum`, the default of acemq) or of the classic kind \
             (`rungs = classic`, for a queue shared with another library of the family): use the kind that is there, or \
             let the rung run empty, delete it and start again"
        }
        Declaration::Queue { name, .. } if is_aside(name) => {
            "this queue has no arguments in any library of the family: move its messages away, delete it and start again"
        }
        Declaration::Queue { .. } => {
            "leave out `declare` to use the queue as it is, declare it with its own kind, or empty it, delete it and \
             start again"
        }
        Declaration::Exchange { .. } => "delete the exchange, or give the other one another name, and start again",
        Declaration::Binding { .. } | Declaration::QueueExists { .. } => "compare the two, and start again",
    };
    format!("{difference}{what}")
}

fn is_aside(name: &str) -> bool {
    [".dlq", ".parked"].iter().any(|suffix| name.ends_with(suffix))
}

fn is_rung(name: &str) -> bool {
    name.contains(".retry.")
}

/// The argument, the value there and the value wanted, from the broker's sentence.
fn difference(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("inequivalent arg '")?;
    let (argument, rest) = rest.split_once('\'')?;
    let (_, rest) = rest.split_once("received ")?;
    let (wanted, there) = rest.split_once(" but current is ")?;
    let there = there.trim_end_matches('"').trim();
    Some(format!("argument `{argument}` is {there} there and {wanted} here"))
}

fn denied(wanted: &Declaration) -> String {
    let pattern = match wanted {
        Declaration::Queue { name, .. } if is_rung(name) => name.split(".retry.").next().unwrap_or(name),
        Declaration::Queue { name, .. } | Declaration::QueueExists { name } => {
            name.strip_suffix(".dlq").or_else(|| name.strip_suffix(".parked")).unwrap_or(name)
        }
        Declaration::Binding { queue, .. } => queue,
        Declaration::Exchange { name, .. } => name,
    };
    format!(
        "give the user `configure`, `write` and `read` on what matches `^({}|{}|{}).*`, or let an administrator declare it",
        pattern,
        names::DEAD_LETTER_EXCHANGE,
        names::RETRY_EXCHANGE,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Table;

    fn queue(name: &str) -> Declaration {
        Declaration::Queue { name: name.to_owned(), arguments: Table::new() }
    }

    #[test]
    fn a_mismatch_names_the_argument_the_value_there_and_the_value_wanted() {
        let error = DeclareError::Mismatch {
            object: "queue `orders.retry.40s`".to_owned(),
            text: "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'orders.retry.40s' in vhost '/': \
                   received 'quorum' but current is 'classic'"
                .to_owned(),
        };
        let said = remedy(&queue("orders.retry.40s"), &error);
        assert!(said.starts_with("argument `x-queue-type` is 'classic' there and 'quorum' here; a rung is"), "{said}");
        assert!(said.contains("`rungs = classic`") && said.contains("`rungs = quorum`"), "{said}");
    }

    #[test]
    fn every_refusal_has_a_remedy_of_its_own() {
        let there = Declaration::QueueExists { name: "orders".to_owned() };
        let missing = DeclareError::Missing { object: there.to_string() };
        assert!(remedy(&there, &missing).contains("`declare = quorum`"));
        let denied = DeclareError::Denied { object: "queue `orders.dlq`".to_owned(), text: String::new() };
        assert!(remedy(&queue("orders.dlq"), &denied).contains("^(orders|acemq.dlx|acemq.retry).*"));
    }
}
