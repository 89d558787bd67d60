//! The values of options and settings: literals of the wrong kind are found here, all else is the compiler's to check.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::{
    Expr, ExprLit, ExprUnary, Lit, LitStr, Path, Type, UnOp,
    ext::IdentExt,
    parse::{Parse, ParseStream, Parser},
};

use crate::{
    entries::Known,
    errors::Errors,
    suggest::{list, nearest},
};

/// A length of time.
#[derive(Clone)]
pub(crate) enum Length {
    /// In the grammar of acemq.
    Text(LitStr),
    /// A constant expression of type `Duration`.
    Constant(Expr),
}

impl ToTokens for Length {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Text(text) => text.to_tokens(tokens),
            Self::Constant(value) => value.to_tokens(tokens),
        }
    }
}

/// The expression behind the invisible parentheses that macros by example put around their arguments.
pub(crate) fn bare(mut value: Expr) -> Expr {
    while let Expr::Group(group) = value {
        value = *group.expr;
    }
    value
}

/// Parses all of `tokens`; what is left over must have been meant as another entry.
pub(crate) fn parse_all<T: Parse>(
    tokens: TokenStream,
    errors: &mut Errors,
    otherwise: impl std::fmt::Display,
) -> Option<T> {
    let parser = |input: ParseStream<'_>| Ok((input.parse::<T>()?, input.parse::<TokenStream>()?));
    match parser.parse2(tokens.clone()) {
        Ok((value, rest)) if rest.is_empty() => Some(value),
        Ok((_, rest)) => {
            errors.on(rest, "expected `,` before this");
            None
        }
        Err(_) => {
            errors.on(tokens, otherwise);
            None
        }
    }
}

fn expression(known: &Known, tokens: TokenStream, what: &str, errors: &mut Errors) -> Option<Expr> {
    let otherwise = takes(known, what);
    parse_all::<Expr>(tokens, errors, otherwise).map(bare)
}

fn takes(known: &Known, what: &str) -> String {
    format!("`{}` takes {what}, as in `{}`", known.name, known.example)
}

fn negative(value: &Expr) -> bool {
    matches!(value, Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) if matches!(**expr, Expr::Lit(_)))
}

/// A whole number of at most `max`, or a constant expression.
pub(crate) fn number(known: &Known, tokens: TokenStream, max: u32, errors: &mut Errors) -> Option<Expr> {
    let what = format!("a whole number from 1 to {max}");
    let value = expression(known, tokens, &what, errors)?;
    let fits = match &value {
        Expr::Lit(ExprLit { lit: Lit::Int(digits), .. }) => {
            digits.base10_parse::<u64>().is_ok_and(|number| number <= u64::from(max))
        }
        Expr::Lit(_) => false,
        other => !negative(other),
    };
    if fits {
        return Some(value);
    }
    errors.on(value, takes(known, &what));
    None
}

/// A number from 0 to 1, or a constant expression.
pub(crate) fn share(known: &Known, tokens: TokenStream, errors: &mut Errors) -> Option<Expr> {
    const WHAT: &str = "a number from 0.0 to 1.0";
    match expression(known, tokens, WHAT, errors)? {
        Expr::Lit(ExprLit { lit: Lit::Int(digits), attrs }) if digits.suffix().is_empty() => {
            // 0 and 1 read as well without their fraction.
            let lit = syn::LitFloat::new(&format!("{}.0", digits.base10_digits()), digits.span());
            Some(Expr::Lit(ExprLit { attrs, lit: Lit::Float(lit) }))
        }
        value @ Expr::Lit(ExprLit { lit: Lit::Float(_), .. }) => Some(value),
        value @ Expr::Lit(_) => {
            errors.on(value, takes(known, WHAT));
            None
        }
        value => Some(value),
    }
}

/// A string, or a constant expression.
pub(crate) fn text(known: &Known, tokens: TokenStream, errors: &mut Errors) -> Option<Expr> {
    const WHAT: &str = "a string";
    match expression(known, tokens, WHAT, errors)? {
        value @ Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => Some(value),
        value if negative(&value) || matches!(value, Expr::Lit(_)) => {
            errors.on(value, takes(known, WHAT));
            None
        }
        value => Some(value),
    }
}

/// A duration in text, or a constant expression of type `Duration`.
pub(crate) fn length(known: &Known, tokens: TokenStream, errors: &mut Errors) -> Option<Length> {
    const WHAT: &str = "a duration: a string such as \"30s\" or a constant of type `Duration`";
    match expression(known, tokens, WHAT, errors)? {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(Length::Text(text)),
        value if negative(&value) || matches!(value, Expr::Lit(_)) => {
            errors.on(value, takes(known, WHAT));
            None
        }
        value => Some(Length::Constant(value)),
    }
}

/// One of a few words.
pub(crate) fn word(
    known: &Known,
    tokens: TokenStream,
    words: &[&'static str],
    errors: &mut Errors,
) -> Option<&'static str> {
    let expected = format!("`{}` is {}", known.name, list(words.iter().copied()));
    let value = parse_all::<Expr>(tokens, errors, &expected).map(bare)?;
    let (found, quoted) = match &value {
        Expr::Path(path) => match path.path.get_ident() {
            Some(ident) => (ident.unraw().to_string(), false),
            None => (String::new(), false),
        },
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => (text.value(), true),
        _ => (String::new(), false),
    };
    match words.iter().find(|word| **word == found) {
        Some(word) if quoted => {
            errors.on(value, format_args!("write `{} = {word}`, without the quotes", known.name));
            None
        }
        Some(word) => Some(word),
        None => {
            match nearest(&found, words.iter().copied()) {
                Some(meant) => {
                    errors.on(value, format_args!("{expected}; did you mean `{meant}`?"));
                }
                None => errors.on(value, expected),
            }
            None
        }
    }
}

/// The path of a function.
pub(crate) fn function(known: &Known, tokens: TokenStream, errors: &mut Errors) -> Option<Expr> {
    const WHAT: &str = "the path of a function";
    match expression(known, tokens, WHAT, errors)? {
        value @ Expr::Path(_) => Some(value),
        value => {
            errors.on(value, takes(known, WHAT));
            None
        }
    }
}

/// The path of a type.
pub(crate) fn type_path(known: &Known, tokens: TokenStream, errors: &mut Errors) -> Option<Type> {
    const WHAT: &str = "the path of a type";
    let mut found = parse_all::<Type>(tokens, errors, takes(known, WHAT))?;
    while let Type::Group(group) = found {
        found = *group.elem;
    }
    if matches!(found, Type::Path(_)) {
        return Some(found);
    }
    errors.on(found, takes(known, WHAT));
    None
}

/// The path of a module, for `crate`.
pub(crate) fn module(known: &Known, tokens: TokenStream, errors: &mut Errors) -> Option<Path> {
    let otherwise = takes(known, "a path");
    let parser = Path::parse_mod_style;
    if let Ok(path) = parser.parse2(tokens.clone()) {
        Some(path)
    } else {
        errors.on(tokens, otherwise);
        None
    }
}

/// Two strings in parentheses, each of which may be a constant expression.
pub(crate) fn pair(known: &Known, tokens: TokenStream, errors: &mut Errors) -> Option<(Expr, Expr)> {
    const WHAT: &str = "an exchange and a routing key";
    let string = |value: Expr, errors: &mut Errors| match value {
        value @ Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => Some(value),
        value if negative(&value) || matches!(value, Expr::Lit(_)) => {
            errors.on(value, format_args!("the exchange and the routing key are strings, as in `{}`", known.example));
            None
        }
        value => Some(value),
    };
    match expression(known, tokens, WHAT, errors)? {
        Expr::Tuple(tuple) if tuple.elems.len() == 2 => {
            let mut elements = tuple.elems.into_iter();
            let exchange = string(bare(elements.next()?), errors);
            let routing_key = string(bare(elements.next()?), errors);
            Some((exchange?, routing_key?))
        }
        value => {
            errors.on(value, takes(known, WHAT));
            None
        }
    }
}

/// The text of a string literal.
pub(crate) fn literal(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// A name as people write it, without the mark of a raw identifier.
pub(crate) fn spoken(name: &Ident) -> String {
    name.unraw().to_string()
}
