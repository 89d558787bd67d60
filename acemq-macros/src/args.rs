//! The options of `#[consumer(…)]`.

use proc_macro2::{Ident, Span, TokenStream};
use syn::{Attribute, Expr, Path, Type};

use crate::{
    entries::{Entries, Given, Known, Shape, Table},
    errors::Errors,
    retry::{self, Retry},
    values::{self, Length},
};

/// What was given to the attribute; what is missing was left out, or was malformed and reported.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) krate: Option<Path>,
    pub(crate) queue: Option<Expr>,
    pub(crate) retry: Option<Retry>,
    pub(crate) retry_delay: Option<Length>,
    pub(crate) idempotent: Option<Idempotent>,
    pub(crate) prefetch: Option<Expr>,
    pub(crate) concurrency: Option<Expr>,
    pub(crate) timeout: Option<Length>,
    pub(crate) declare: Option<&'static str>,
    pub(crate) bind: Vec<(Expr, Expr)>,
    pub(crate) rungs: Option<&'static str>,
    pub(crate) codec: Option<Type>,
    pub(crate) blocking: Option<Ident>,
    pub(crate) name: Option<Expr>,
}

/// The settings of `idempotent`.
pub(crate) struct Idempotent {
    /// The word itself, for what is wrong with a default.
    pub(crate) word: Ident,
    pub(crate) retention: Option<Length>,
    pub(crate) claim: Option<Length>,
    pub(crate) in_progress_delay: Option<Length>,
    pub(crate) key: Option<Expr>,
    pub(crate) scope: Option<&'static str>,
    pub(crate) no_id: Option<&'static str>,
    pub(crate) store: Option<Expr>,
}

const INSIDE_RETRY: &str =
    "it is a setting of the policy, as in `retry = exponential(5, \"1s\", \"1m\", give_up_after = \"6h\")`";
const INSIDE_IDEMPOTENT: &str =
    "it is a setting of `idempotent`, as in `idempotent(retention = \"1d\", claim = \"5m\")`";

pub(crate) static OPTIONS: Table = Table {
    of: None,
    known: &[
        Known::new("queue", Shape::Value, r#"queue = "orders.placed""#),
        Known::new("retry", Shape::Value, r#"retry = exponential(5, "1s", "1m")"#),
        Known::new("retry_delay", Shape::Value, r#"retry_delay = "5s""#),
        Known::new("idempotent", Shape::FlagOrList, r#"idempotent(retention = "1d")"#),
        Known::new("prefetch", Shape::Value, "prefetch = 20"),
        Known::new("concurrency", Shape::Value, "concurrency = 10"),
        Known::new("timeout", Shape::Value, r#"timeout = "30s""#),
        Known::new("declare", Shape::Value, "declare = quorum"),
        Known { repeats: true, ..Known::new("bind", Shape::Value, r#"bind = ("orders", "order.placed")"#) },
        Known::new("rungs", Shape::Value, "rungs = quorum"),
        Known::new("codec", Shape::Value, "codec = acemq::envelope::Json"),
        Known::new("blocking", Shape::Flag, "blocking"),
        Known::new("name", Shape::Value, r#"name = "record-order""#),
        Known::new("crate", Shape::Value, "crate = my_crate::acemq"),
    ],
    instead: &[
        ("attempts", INSIDE_RETRY),
        ("max_attempts", INSIDE_RETRY),
        ("jitter", INSIDE_RETRY),
        ("give_up_after", INSIDE_RETRY),
        ("wait_in_broker_from", INSIDE_RETRY),
        ("retention", INSIDE_IDEMPOTENT),
        ("claim", INSIDE_IDEMPOTENT),
        ("in_progress_delay", INSIDE_IDEMPOTENT),
        ("key", INSIDE_IDEMPOTENT),
        ("scope", INSIDE_IDEMPOTENT),
        ("no_id", INSIDE_IDEMPOTENT),
        ("store", INSIDE_IDEMPOTENT),
        ("retries", "the number of tries is part of `retry`, as in `retry = fixed(5, \"10s\")`"),
        ("exchange", "a binding names it, as in `bind = (\"orders\", \"order.placed\")`"),
        ("routing_key", "a binding names it, as in `bind = (\"orders\", \"order.placed\")`"),
        ("topic", "a consumer names its queue, as in `queue = \"orders.placed\"`"),
        ("workers", "the number of handlers at once is `concurrency`"),
        ("dead_letter", "every queue has one: `{queue}.dlq`"),
        ("dlq", "every queue has one: `{queue}.dlq`"),
        ("durable", "every queue that acemq declares is: `declare = quorum`"),
        ("deduplicate", "that is `idempotent`"),
    ],
    lone_text: Some("queue"),
    positional: 0,
};

pub(crate) static IDEMPOTENT: Table = Table {
    of: Some("idempotent"),
    known: &[
        Known::new("retention", Shape::Value, r#"retention = "1d""#),
        Known::new("claim", Shape::Value, r#"claim = "5m""#),
        Known::new("in_progress_delay", Shape::Value, r#"in_progress_delay = "5s""#),
        Known::new("key", Shape::Value, "key = OrderPlaced::order_id"),
        Known::new("scope", Shape::Value, "scope = queue"),
        Known::new("no_id", Shape::Value, "no_id = run"),
        Known::new("store", Shape::Value, r#"store = "orders""#),
    ],
    instead: &[("ttl", "that is `retention`"), ("lease", "that is `claim`")],
    lone_text: None,
    positional: 0,
};

const KINDS: &[&str] = &["quorum", "classic"];

impl Options {
    /// Reads the tokens between the parentheses of the attribute.
    ///
    /// What is missing is blamed on `attribute`, or on the macro's call.
    pub(crate) fn read(tokens: TokenStream, attribute: Option<&Attribute>, errors: &mut Errors) -> Self {
        let mut entries = OPTIONS.read(tokens, errors);
        if entries.lacks("queue") {
            let sentence = "a consumer needs a queue: `#[consumer(queue = \"orders.placed\")]`";
            match attribute {
                Some(attribute) => errors.on(attribute, sentence),
                None => errors.at(Span::call_site(), sentence),
            }
        }
        if entries.mentions("retry")
            && let Some((name, _)) = entries.take("retry_delay")
        {
            errors.on(
                name,
                "`retry_delay` is for a consumer without `retry`: give the delay to the policy, as in `retry = fixed(5, \"10s\")`",
            );
        }
        let mut take = Take { table: &OPTIONS, entries: &mut entries, errors };
        let mut options = Self {
            krate: take.with("crate", values::module),
            queue: take.with("queue", values::text),
            retry: take.with("retry", |_, tokens, errors| retry::read(tokens, errors)),
            retry_delay: take.with("retry_delay", values::length),
            idempotent: None,
            prefetch: take.with("prefetch", small),
            concurrency: take.with("concurrency", small),
            timeout: take.with("timeout", values::length),
            declare: take.with("declare", kind),
            bind: Vec::new(),
            rungs: take.with("rungs", kind),
            codec: take.with("codec", values::type_path),
            blocking: None,
            name: take.with("name", values::text),
        };
        while let Some((_, tokens)) = entries.value("bind") {
            let known = OPTIONS.find("bind");
            options.bind.extend(known.and_then(|known| values::pair(known, tokens, errors)));
        }
        options.blocking = entries.take("blocking").map(|(word, _)| word);
        options.idempotent = entries.take("idempotent").map(|(word, given)| Idempotent::read(word, given, errors));
        options
    }
}

impl Idempotent {
    fn read(word: Ident, given: Given, errors: &mut Errors) -> Self {
        let mut entries = match given {
            Given::List(group) => IDEMPOTENT.read(group.stream(), errors),
            Given::Bare | Given::Value(_) => Entries::default(),
        };
        let mut take = Take { table: &IDEMPOTENT, entries: &mut entries, errors };
        Self {
            word,
            retention: take.with("retention", values::length),
            claim: take.with("claim", values::length),
            in_progress_delay: take.with("in_progress_delay", values::length),
            key: take.with("key", values::function),
            scope: take
                .with("scope", |known, tokens, errors| values::word(known, tokens, &["queue", "shared"], errors)),
            no_id: take.with("no_id", |known, tokens, errors| values::word(known, tokens, &["run", "park"], errors)),
            store: take.with("store", values::text),
        }
    }
}

fn small(known: &Known, tokens: TokenStream, errors: &mut Errors) -> Option<Expr> {
    values::number(known, tokens, u32::from(u16::MAX), errors)
}

fn kind(known: &Known, tokens: TokenStream, errors: &mut Errors) -> Option<&'static str> {
    values::word(known, tokens, KINDS, errors)
}

/// Takes values out of entries and reads them.
pub(crate) struct Take<'a> {
    pub(crate) table: &'static Table,
    pub(crate) entries: &'a mut Entries,
    pub(crate) errors: &'a mut Errors,
}

impl Take<'_> {
    pub(crate) fn with<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Known, TokenStream, &mut Errors) -> Option<T>,
    ) -> Option<T> {
        let known = self.table.find(name)?;
        let (_, tokens) = self.entries.value(name)?;
        read(known, tokens, self.errors)
    }
}
