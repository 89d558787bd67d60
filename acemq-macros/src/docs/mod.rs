//! What a consumer's documentation says of its settings.

mod schedule;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, parse_quote};

use crate::{
    args::{Idempotent, Options},
    retry::Retry,
    values::{Length, literal},
};

pub(crate) use schedule::Schedule;

/// The settings as an attribute for the function.
pub(crate) fn of(options: &Options) -> TokenStream {
    let text = describe(options);
    quote!(#[doc = #text])
}

/// The settings as one more attribute of a method, and what a linter must not hold against it.
pub(crate) fn attach(attributes: &mut Vec<Attribute>, options: &Options) {
    let (text, asked_for) = (describe(options), asked_for(options));
    attributes.push(parse_quote!(#[doc = #text]));
    attributes.push(parse_quote!(#asked_for));
    attributes.push(parse_quote!(#[allow(clippy::unused_self)]));
}

/// What acemq itself asks for, so that no linter holds it against a function: to be `async`, or to own its arguments; a
/// method, to take `&self`.
pub(crate) fn asked_for(options: &Options) -> TokenStream {
    if options.blocking.is_some() {
        quote!(#[allow(clippy::needless_pass_by_value)])
    } else {
        quote!(#[allow(clippy::unused_async)])
    }
}

/// The settings in Markdown.
pub(crate) fn describe(options: &Options) -> String {
    let queue = options.queue.as_ref().map(value).unwrap_or_default();
    let mut rows = vec![("queue", consumed(options, &queue))];
    // The name of a constant is no part of the names that acemq derives.
    let queue = options.queue.as_ref().and_then(literal).unwrap_or_else(|| "{queue}".to_owned());
    rows.push(("at once", at_once(options)));
    if let Some(limit) = &options.timeout {
        rows.push(("time limit", length(limit)));
    }
    rows.push(("gives up", gives_up(options, &queue)));
    if let Some(idempotent) = &options.idempotent {
        rows.push(("duplicates", duplicates(idempotent)));
    }
    let rows: Vec<String> = rows.iter().map(|(name, value)| format!("| {name} | {value} |\n")).collect();
    format!("\n# Consumer\n\n| | |\n|---|---|\n{}\n{}", rows.concat(), retries(options, &queue))
}

fn consumed(options: &Options, queue: &str) -> String {
    let mut parts = vec![format!("`{queue}`")];
    parts.extend(options.declare.map(|kind| format!("declared as a {kind} queue")));
    parts.extend(
        options
            .bind
            .iter()
            .map(|(exchange, routing_key)| format!("bound to `{}` with key `{}`", value(exchange), value(routing_key))),
    );
    parts.join(", ")
}

fn at_once(options: &Options) -> String {
    let prefetch = options.prefetch.as_ref().map_or_else(|| "20".to_owned(), value);
    match &options.concurrency {
        Some(concurrency) => format!("{} of {prefetch} messages", value(concurrency)),
        None => format!("{prefetch} messages"),
    }
}

fn gives_up(options: &Options, queue: &str) -> String {
    let (attempts, age) = match &options.retry {
        None => return "never".to_owned(),
        Some(Retry::None) => ("1".to_owned(), None),
        Some(Retry::Constant(policy)) => return format!("as `{}` says, to `{queue}.dlq`", value(policy)),
        Some(Retry::Fixed { attempts, common, .. } | Retry::Exponential { attempts, common, .. }) => {
            (value(attempts), common.give_up_after.as_ref())
        }
    };
    let noun = if attempts == "1" { "delivery" } else { "deliveries" };
    let age = age.map(|age| format!(", or when {} old", length(age))).unwrap_or_default();
    format!("after {attempts} {noun}{age}, to `{queue}.dlq`")
}

fn duplicates(idempotent: &Idempotent) -> String {
    let or = |value: &Option<Length>, default: &str| value.as_ref().map_or_else(|| default.to_owned(), length);
    let key = idempotent.key.as_ref().map(|key| format!(", by `{}`", value(key))).unwrap_or_default();
    format!(
        "kept out{key}: a claim lasts {}, a handled message is remembered for {}",
        or(&idempotent.claim, "5m"),
        or(&idempotent.retention, "1d"),
    )
}

fn retries(options: &Options, queue: &str) -> String {
    match Schedule::of(options) {
        Some(schedule) => schedule.table(queue),
        None => match &options.retry {
            Some(Retry::Fixed { attempts, delay, .. }) => {
                format!("Retries: `fixed({}, {})`\n", value(attempts), bare(delay))
            }
            Some(Retry::Exponential { attempts, initial, max, .. }) => {
                format!("Retries: `exponential({}, {}, {})`\n", value(attempts), bare(initial), bare(max))
            }
            Some(Retry::Constant(policy)) => format!("Retries: `{}`\n", value(policy)),
            None => {
                let delay = options.retry_delay.as_ref().map(length).unwrap_or_default();
                format!("Retries: without end, {delay} apart\n")
            }
            Some(Retry::None) => String::new(),
        },
    }
}

/// A string without its quotes, or any other value as it is written.
fn value(value: &Expr) -> String {
    literal(value).unwrap_or_else(|| text(value))
}

fn length(length: &Length) -> String {
    match length {
        Length::Text(text) => text.value(),
        Length::Constant(value) => format!("`{}`", text(value)),
    }
}

/// A length of time within code.
fn bare(length: &Length) -> String {
    match length {
        Length::Text(text) => text.value(),
        Length::Constant(value) => text(value),
    }
}

/// Tokens as a person would write them.
pub(crate) fn text(tokens: impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (spaced, close) in
        [(" :: ", "::"), (":: ", "::"), (" (", "("), (" . ", "."), (" < ", "<"), (" >", ">"), (" ,", ","), ("& ", "&")]
    {
        text = text.replace(spaced, close);
    }
    text
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
