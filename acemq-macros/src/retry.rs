//! The value of `retry`: a policy in words, or any constant expression of its type.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::Expr;

use crate::{
    args::Take,
    entries::{Entries, Known, Shape, Table},
    errors::Errors,
    suggest::nearest,
    values::{self, Length, bare, parse_all, spoken},
};

/// What follows a failure.
pub(crate) enum Retry {
    /// Nothing.
    None,
    /// Waits of one length.
    Fixed { attempts: Expr, delay: Length, common: Common },
    /// Waits that double.
    Exponential { attempts: Expr, initial: Length, max: Length, common: Common },
    /// A policy of the user's.
    Constant(Expr),
}

/// The settings that both policies have.
pub(crate) struct Common {
    pub(crate) jitter: Option<Expr>,
    pub(crate) give_up_after: Option<Length>,
    pub(crate) wait_in_broker_from: Option<Length>,
}

const ATTEMPTS: Known = Known::new("attempts", Shape::Value, "attempts = 5");
const JITTER: Known = Known::new("jitter", Shape::Value, "jitter = 0.3");
const GIVE_UP_AFTER: Known = Known::new("give_up_after", Shape::Value, r#"give_up_after = "6h""#);
const WAIT_IN_BROKER_FROM: Known = Known::new("wait_in_broker_from", Shape::Value, r#"wait_in_broker_from = "1m""#);

const TRIES: &str = "that is `attempts`, which counts the first delivery too";

pub(crate) static FIXED: Table = Table {
    of: Some("fixed"),
    known: &[
        ATTEMPTS,
        Known::new("delay", Shape::Value, r#"delay = "5s""#),
        JITTER,
        GIVE_UP_AFTER,
        WAIT_IN_BROKER_FROM,
    ],
    instead: &[
        ("tries", TRIES),
        ("retries", TRIES),
        ("times", TRIES),
        ("max_attempts", TRIES),
        ("max", "the delay of `fixed` never grows; `exponential` has a `max`"),
        ("initial", "the delay of `fixed` never grows: name it `delay`"),
        ("interval", "that is `delay`"),
    ],
    lone_text: None,
    positional: 2,
};

pub(crate) static EXPONENTIAL: Table = Table {
    of: Some("exponential"),
    known: &[
        ATTEMPTS,
        Known::new("initial", Shape::Value, r#"initial = "1s""#),
        Known::new("max", Shape::Value, r#"max = "1m""#),
        JITTER,
        GIVE_UP_AFTER,
        WAIT_IN_BROKER_FROM,
    ],
    instead: &[
        ("tries", TRIES),
        ("retries", TRIES),
        ("times", TRIES),
        ("max_attempts", TRIES),
        ("delay", "the first delay of `exponential` is `initial`"),
        ("first", "that is `initial`"),
        ("max_delay", "that is `max`"),
        ("cap", "that is `max`"),
        ("factor", "each delay is twice the one before"),
        ("multiplier", "each delay is twice the one before"),
    ],
    lone_text: None,
    positional: 3,
};

const POLICIES: [&str; 3] = ["none", "fixed", "exponential"];

/// Names that people know from elsewhere: as a call of one word they are a policy, not a function.
const ELSEWHERE: [&str; 12] = [
    "linear",
    "constant",
    "exp",
    "backoff",
    "exponential_backoff",
    "fibonacci",
    "forever",
    "never",
    "unbounded",
    "infinite",
    "always",
    "unlimited",
];

const TAKES: &str = "`retry` takes a policy: `none`, `fixed(5, \"10s\")`, `exponential(5, \"1s\", \"1m\")` or a constant of type `RetryPolicy`";

/// Reads the value of `retry`.
pub(crate) fn read(tokens: TokenStream, errors: &mut Errors) -> Option<Retry> {
    let parts: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let in_words = match parts.as_slice() {
        [TokenTree::Ident(name), rest @ ..] => in_words(name, rest, errors),
        _ => None,
    };
    match in_words {
        Some(Words::Policy(policy)) => return Some(*policy),
        Some(Words::Mistaken) => return None,
        None => {}
    }
    match parse_all::<Expr>(tokens, errors, TAKES).map(bare)? {
        value @ (Expr::Lit(_) | Expr::Unary(_) | Expr::Tuple(_)) => {
            errors.on(value, TAKES);
            None
        }
        value => Some(Retry::Constant(value)),
    }
}

/// What stands in our words.
enum Words {
    Policy(Box<Retry>),
    /// Nothing that makes sense, which has been said.
    Mistaken,
}

impl Words {
    fn of(policy: Option<Retry>) -> Self {
        policy.map_or(Self::Mistaken, |policy| Self::Policy(Box::new(policy)))
    }
}

/// A policy in our words, well written or not; nothing when it is an expression of the user's.
fn in_words(name: &Ident, rest: &[TokenTree], errors: &mut Errors) -> Option<Words> {
    let sentence = match (name.to_string().as_str(), rest) {
        ("none", []) => return Some(Words::Policy(Box::new(Retry::None))),
        ("fixed", [TokenTree::Group(group)]) if is_call(group) => {
            return Some(Words::of(fixed(name, group, errors)));
        }
        ("exponential", [TokenTree::Group(group)]) if is_call(group) => {
            return Some(Words::of(exponential(name, group, errors)));
        }
        ("none", [TokenTree::Group(group)]) if is_call(group) => {
            "`none` takes no settings: write `retry = none`".to_owned()
        }
        ("fixed", []) => "`fixed` needs its settings, as in `retry = fixed(5, \"10s\")`".to_owned(),
        ("exponential", []) => {
            "`exponential` needs its settings, as in `retry = exponential(5, \"1s\", \"1m\")`".to_owned()
        }
        (_, rest) if is_misspelt(name, rest) => unknown(name),
        _ => return None,
    };
    errors.on(name, sentence);
    Some(Words::Mistaken)
}

fn is_call(group: &Group) -> bool {
    group.delimiter() == Delimiter::Parenthesis
}

/// Whether a word, alone or called, was meant as a policy of ours rather than as a constant or a function.
fn is_misspelt(name: &Ident, rest: &[TokenTree]) -> bool {
    let word = spoken(name);
    let looks_known = ELSEWHERE.contains(&word.as_str()) || nearest(&word, POLICIES).is_some();
    match rest {
        [] => looks_known,
        [TokenTree::Group(group)] if is_call(group) => looks_known || has_settings(group),
        _ => false,
    }
}

/// Whether `name = value` stands in a list, which no function call has.
fn has_settings(group: &Group) -> bool {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    tokens.windows(3).any(|window| {
        matches!(window, [TokenTree::Ident(_), TokenTree::Punct(equals), after]
            if equals.as_char() == '='
                && equals.spacing() == proc_macro2::Spacing::Alone
                && !matches!(after, TokenTree::Punct(punct) if punct.as_char() == '='))
    })
}

fn unknown(name: &Ident) -> String {
    let word = spoken(name);
    match nearest(&word, POLICIES) {
        Some(meant) => format!("unknown retry policy `{word}`; did you mean `{meant}`?"),
        None if matches!(word.as_str(), "forever" | "unbounded" | "infinite" | "always" | "unlimited") => {
            format!("unknown retry policy `{word}`; a consumer without `retry` tries for ever, `retry_delay` apart")
        }
        None if word == "never" => {
            format!("unknown retry policy `{word}`; for no retry write `retry = none`")
        }
        None => format!(
            "unknown retry policy `{word}`; expected `none`, `fixed(5, \"10s\")`, `exponential(5, \"1s\", \"1m\")` or a constant of type `RetryPolicy`"
        ),
    }
}

fn fixed(name: &Ident, group: &Group, errors: &mut Errors) -> Option<Retry> {
    let mut settings = Settings::read(&FIXED, name, group, errors);
    let needed = settings.needed(["attempts", "delay"]);
    let attempts = settings.required("attempts", whole);
    let delay = settings.required("delay", values::length);
    let common = settings.common();
    needed.then_some(())?;
    Some(Retry::Fixed { attempts: attempts?, delay: delay?, common })
}

fn exponential(name: &Ident, group: &Group, errors: &mut Errors) -> Option<Retry> {
    let mut settings = Settings::read(&EXPONENTIAL, name, group, errors);
    let needed = settings.needed(["attempts", "initial", "max"]);
    let attempts = settings.required("attempts", whole);
    let initial = settings.required("initial", values::length);
    let max = settings.required("max", values::length);
    let common = settings.common();
    needed.then_some(())?;
    Some(Retry::Exponential { attempts: attempts?, initial: initial?, max: max?, common })
}

fn whole(known: &Known, tokens: TokenStream, errors: &mut Errors) -> Option<Expr> {
    values::number(known, tokens, u32::MAX, errors)
}

/// The settings of one policy: values by position first, then by name.
struct Settings<'a> {
    table: &'static Table,
    policy: &'a Ident,
    entries: Entries,
    /// How many stand without a name; the rest has been taken out of the entries by name.
    positional: std::vec::IntoIter<TokenStream>,
    given: usize,
    errors: &'a mut Errors,
    place: usize,
}

impl<'a> Settings<'a> {
    fn read(table: &'static Table, policy: &'a Ident, group: &Group, errors: &'a mut Errors) -> Self {
        let mut entries = table.read(group.stream(), errors);
        let positional = std::mem::take(&mut entries.positional);
        for (known, _) in table.known.iter().zip(&positional) {
            if let Some((name, _)) = entries.take(known.name) {
                errors.on(&name, format_args!("`{name}` is given twice: the first values are {}", order(table)));
            }
        }
        let given = positional.len();
        Self { table, policy, entries, positional: positional.into_iter(), given, errors, place: 0 }
    }

    /// Says what is missing, all in one sentence.
    fn needed<const N: usize>(&mut self, names: [&'static str; N]) -> bool {
        let missing: Vec<&str> =
            names.iter().skip(self.given).filter(|name| self.entries.lacks(name)).copied().collect();
        if missing.is_empty() {
            return true;
        }
        let all: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let example: Vec<&str> = self.table.known.iter().take(N).map(|known| known.example).collect();
        let list = match all.split_last() {
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
            None => String::new(),
        };
        self.errors
            .on(self.policy, format_args!("`{0}` needs {list}, as in `{0}({1})`", self.policy, example.join(", ")));
        false
    }

    fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Known, TokenStream, &mut Errors) -> Option<T>,
    ) -> Option<T> {
        self.place += 1;
        if self.place <= self.given {
            let known = self.table.find(name)?;
            return read(known, self.positional.next()?, self.errors);
        }
        self.optional(name, read)
    }

    fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Known, TokenStream, &mut Errors) -> Option<T>,
    ) -> Option<T> {
        Take { table: self.table, entries: &mut self.entries, errors: self.errors }.with(name, read)
    }

    fn common(&mut self) -> Common {
        Common {
            jitter: self.optional("jitter", values::share),
            give_up_after: self.optional("give_up_after", values::length),
            wait_in_broker_from: self.optional("wait_in_broker_from", values::length),
        }
    }
}

fn order(table: &Table) -> String {
    let names: Vec<String> =
        table.known.iter().take(table.positional).map(|known| format!("`{}`", known.name)).collect();
    names.join(", ")
}
