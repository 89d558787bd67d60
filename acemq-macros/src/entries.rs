//! The entries of an attribute: split at commas first, so that a mistake in one leaves the others readable.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;

use crate::{
    errors::Errors,
    suggest::{list, nearest},
};

/// What an option or a setting may look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `name = value`
    Value,
    /// `name`
    Flag,
    /// `name` or `name(…)`
    FlagOrList,
}

/// One option or setting that is known.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// How it is written.
    pub(crate) example: &'static str,
    /// Whether it may be given more than once.
    pub(crate) repeats: bool,
}

impl Known {
    pub(crate) const fn new(name: &'static str, shape: Shape, example: &'static str) -> Self {
        Self { name, shape, example, repeats: false }
    }
}

/// Everything that may stand in one pair of parentheses.
pub(crate) struct Table {
    /// `None` for the options of the attribute itself, or what the settings belong to.
    pub(crate) of: Option<&'static str>,
    pub(crate) known: &'static [Known],
    /// Words that people write in place of known ones, and what to tell them.
    pub(crate) instead: &'static [(&'static str, &'static str)],
    /// What a string without a name was meant to be.
    pub(crate) lone_text: Option<&'static str>,
    /// Whether values may stand without a name before the named ones.
    pub(crate) positional: usize,
}

/// What was given for a name.
pub(crate) enum Given {
    Bare,
    Value(TokenStream),
    List(Group),
}

/// What stands in one pair of parentheses, each entry being of a known name and shape.
#[derive(Default)]
pub(crate) struct Entries {
    pub(crate) positional: Vec<TokenStream>,
    named: Vec<(Ident, Given)>,
    /// Names whose entry is malformed: they were given, so they are not missing.
    malformed: Vec<String>,
    /// Names that an unknown one stands for: they are not missing either.
    meant: Vec<&'static str>,
}

impl Entries {
    /// Takes the entry of this name out.
    pub(crate) fn take(&mut self, name: &str) -> Option<(Ident, Given)> {
        let place = self.named.iter().position(|(found, _)| found.unraw() == name)?;
        Some(self.named.remove(place))
    }

    /// Takes the value of this name out; its shape has been seen to be a value.
    pub(crate) fn value(&mut self, name: &str) -> Option<(Ident, TokenStream)> {
        match self.take(name)? {
            (name, Given::Value(value)) => Some((name, value)),
            _ => None,
        }
    }

    /// Whether nothing was given for this name, under it or under one that was meant to be it.
    pub(crate) fn lacks(&self, name: &str) -> bool {
        !self.mentions(name) && !self.meant.contains(&name)
    }

    /// Whether this name was given, well or not.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.named.iter().any(|(found, _)| found.unraw() == name) || self.malformed.iter().any(|found| found == name)
    }
}

impl Table {
    pub(crate) fn find(&self, name: &str) -> Option<&'static Known> {
        self.known.iter().find(|known| known.name == name)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.known.iter().map(|known| known.name)
    }

    /// Reads all entries, and collects what is wrong with each.
    pub(crate) fn read(&self, tokens: TokenStream, errors: &mut Errors) -> Entries {
        let mut entries = Entries::default();
        for part in split(tokens, errors) {
            self.entry(part, &mut entries, errors);
        }
        entries
    }

    fn entry(&self, part: Vec<TokenTree>, entries: &mut Entries, errors: &mut Errors) {
        let mut tokens = part.iter();
        let name = match tokens.next() {
            Some(TokenTree::Ident(name)) if !self.is_positional(&part, entries) => name.clone(),
            _ => {
                let part: TokenStream = part.into_iter().collect();
                return self.positional(part, entries, errors);
            }
        };
        let rest: Vec<TokenTree> = tokens.cloned().collect();
        let word = name.unraw().to_string();
        let Some(known) = self.find(&word) else {
            entries.meant.extend(self.meaning(&word));
            return errors.on(&name, self.unknown(&word));
        };
        if !known.repeats && entries.mentions(&word) {
            return errors.on(&name, format_args!("`{word}` is given twice"));
        }
        match given(known, &name, &rest, errors) {
            Some(given) => entries.named.push((name, given)),
            None => entries.malformed.push(word),
        }
    }

    /// Whether an entry that starts with a word is a value, such as `MAX` or `limits::max()`, where values may stand.
    fn is_positional(&self, part: &[TokenTree], entries: &Entries) -> bool {
        entries.positional.len() < self.positional
            && match part {
                [TokenTree::Ident(name)] => self.find(&name.unraw().to_string()).is_none(),
                [_, TokenTree::Punct(punct), ..] => punct.as_char() != '=',
                _ => true,
            }
    }

    fn positional(&self, part: TokenStream, entries: &mut Entries, errors: &mut Errors) {
        if let Some(name) = self.lone_text.filter(|name| is_text(&part) && !entries.mentions(name)) {
            errors.on(&part, format_args!("a value needs its name: `{name} = {part}`"));
            return entries.malformed.push(name.to_owned());
        }
        if entries.positional.len() >= self.positional {
            let names = list(self.names().skip(self.positional));
            let sentence = match self.of {
                None => format!("expected an option: {names}"),
                Some(of) if self.positional == 0 => format!("expected a setting of `{of}`: {names}"),
                Some(of) => format!("after the first {} a setting of `{of}` has a name: {names}", self.positional),
            };
            return errors.on(part, sentence);
        }
        if !entries.named.is_empty() {
            return errors.on(part, "a value without a name stands before the named settings");
        }
        entries.positional.push(part);
    }

    /// The known name that an unknown one stands for.
    fn meaning(&self, word: &str) -> Option<&'static str> {
        let advised = self.instead.iter().find(|(found, _)| *found == word);
        let advised = advised.and_then(|(_, advice)| advice.strip_prefix("that is `")?.split('`').next());
        advised.and_then(|name| self.find(name)).map(|known| known.name).or_else(|| nearest(word, self.names()))
    }

    fn unknown(&self, word: &str) -> String {
        let what = match self.of {
            None => format!("unknown option `{word}`"),
            Some(of) => format!("unknown setting of `{of}`: `{word}`"),
        };
        if let Some((_, advice)) = self.instead.iter().find(|(found, _)| *found == word) {
            return format!("{what}; {advice}");
        }
        match nearest(word, self.names()) {
            Some(meant) => format!("{what}; did you mean `{meant}`?"),
            None => format!("{what}; expected {}", list(self.names())),
        }
    }
}

/// What was given after a known name, if it has the shape that the name wants.
fn given(known: &Known, name: &Ident, rest: &[TokenTree], errors: &mut Errors) -> Option<Given> {
    let word = known.name;
    let example = known.example;
    let tokens = || rest.iter().cloned().collect::<TokenStream>();
    match (known.shape, rest) {
        (Shape::Flag | Shape::FlagOrList, []) => Some(Given::Bare),
        (Shape::FlagOrList, [TokenTree::Group(group)]) if is_list(group) => Some(Given::List(group.clone())),
        (Shape::Value, []) => {
            errors.on(name, format_args!("`{word}` needs a value, as in `{example}`"));
            None
        }
        (Shape::Value, [TokenTree::Punct(equals), value @ ..]) if equals.as_char() == '=' => {
            if value.is_empty() {
                errors.on(tokens(), format_args!("`{word}` needs a value, as in `{example}`"));
                return None;
            }
            Some(Given::Value(value.iter().cloned().collect()))
        }
        (Shape::Value, _) => {
            errors.on(tokens(), format_args!("expected `=` after `{word}`, as in `{example}`"));
            None
        }
        // A word with too much behind it was meant all the same.
        (Shape::Flag | Shape::FlagOrList, [TokenTree::Ident(_), ..]) => {
            errors.on(tokens(), "expected `,` before this");
            Some(Given::Bare)
        }
        (Shape::Flag, _) => {
            errors.on(tokens(), format_args!("`{word}` takes no value: write it alone"));
            Some(Given::Bare)
        }
        (Shape::FlagOrList, [TokenTree::Group(group), rest @ ..]) if is_list(group) => {
            errors.on(rest.iter().cloned().collect::<TokenStream>(), "expected `,` before this");
            Some(Given::List(group.clone()))
        }
        (Shape::FlagOrList, _) => {
            errors.on(tokens(), format_args!("`{word}` is written alone or with settings, as in `{example}`"));
            Some(Given::Bare)
        }
    }
}

fn is_text(part: &TokenStream) -> bool {
    syn::parse2::<syn::LitStr>(part.clone()).is_ok()
}

fn is_list(group: &Group) -> bool {
    group.delimiter() == Delimiter::Parenthesis
}

/// Splits at the commas of the top level, but not at those between the angle brackets of a type.
fn split(tokens: TokenStream, errors: &mut Errors) -> Vec<Vec<TokenTree>> {
    let mut parts = Vec::new();
    let mut part: Vec<TokenTree> = Vec::new();
    let mut depth = 0u32;
    for token in tokens {
        if let TokenTree::Punct(punct) = &token {
            match punct.as_char() {
                ',' if depth == 0 => {
                    if part.is_empty() {
                        errors.on(&token, "expected an option before this comma");
                    } else {
                        parts.push(std::mem::take(&mut part));
                    }
                    continue;
                }
                '<' if opens_type(&part) => depth += 1,
                '>' if depth > 0 && !is_arrow(&part) => depth -= 1,
                _ => {}
            }
        }
        part.push(token);
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// Whether `<` after these tokens opens a list of types, rather than being less than something.
fn opens_type(part: &[TokenTree]) -> bool {
    match part {
        [.., TokenTree::Punct(punct)] => matches!(punct.as_char(), ':' | '=' | '<' | '&' | ','),
        [TokenTree::Ident(name), TokenTree::Punct(_), ..] => name == "codec" || name == "key",
        _ => false,
    }
}

fn is_arrow(part: &[TokenTree]) -> bool {
    matches!(part, [.., TokenTree::Punct(punct)] if matches!(punct.as_char(), '-' | '='))
}
