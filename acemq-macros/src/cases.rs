//! The mistakes of `ui-tests`, read again without a compiler: what the macros say of them, whatever the toolchain.

use std::{
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item, Meta};

use crate::{classify, consumer::consumer, message, service::consumers};

/// What must be said of each case, as its first lines have it.
fn says(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("// says: ")).collect()
}

fn cases() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui-tests/fail");
    let mut cases = Vec::new();
    for family in fs::read_dir(root).unwrap() {
        for case in fs::read_dir(family.unwrap().path()).unwrap() {
            let path = case.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                cases.push((path, text));
            }
        }
    }
    cases.sort();
    cases
}

/// Everything that the macros put beside the items of a file.
fn expand(items: &[Item]) -> Vec<TokenStream> {
    let mut expansions = Vec::new();
    for item in items {
        if let Item::Mod(module) = item
            && let Some((_, items)) = &module.content
        {
            expansions.extend(expand(items));
        }
        if let Item::Impl(block) = item
            && !block.attrs.iter().any(|attribute| named(attribute, "consumers"))
        {
            let methods = block.items.iter().map(|method| syn::parse2(method.to_token_stream()).unwrap());
            expansions.extend(expand(&methods.collect::<Vec<Item>>()));
        }
        expansions.extend(attributes(item).into_iter().flat_map(|attribute| one(item, &attribute)));
    }
    expansions
}

/// What one attribute, the first that is ours, makes of an item.
fn one(item: &Item, attribute: &Attribute) -> Vec<TokenStream> {
    let tokens = match &attribute.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    };
    let derives = |name| named(attribute, "derive") && tokens.to_string().contains(name);
    let without = || {
        // The compiler takes an attribute off before it calls the macro.
        let before = attribute.to_token_stream().to_string();
        let text = item.to_token_stream().to_string();
        text.replacen(&before, "", 1).parse::<TokenStream>().unwrap()
    };
    let mut expansions = Vec::new();
    if named(attribute, "consumer") {
        expansions.push(consumer(tokens.clone(), &without()));
    }
    if named(attribute, "consumers") {
        expansions.push(consumers(tokens.clone(), &without()));
    }
    if derives("Message") {
        expansions.push(message::derive(item.to_token_stream()));
    }
    if derives("Classify") {
        expansions.push(classify::derive(item.to_token_stream()));
    }
    expansions
}

fn named(attribute: &Attribute, name: &str) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == name)
}

/// The attributes of an item that come to a macro: of several consumers the first, which then meets the others.
fn attributes(item: &Item) -> Vec<Attribute> {
    let attributes = match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        _ => return Vec::new(),
    };
    let mut consumers = 0;
    attributes
        .iter()
        .filter(|attribute| {
            consumers += usize::from(named(attribute, "consumer"));
            !named(attribute, "consumer") || consumers == 1
        })
        .cloned()
        .collect()
}

/// The sentences of all `compile_error!` in an expansion.
fn sentences(tokens: TokenStream, found: &mut Vec<String>) {
    let mut last = None;
    for token in tokens {
        if let TokenTree::Group(group) = &token {
            if last.as_deref() == Some("compile_error !") {
                let text: syn::LitStr = syn::parse2(group.stream()).unwrap();
                found.push(text.value());
            } else {
                sentences(group.stream(), found);
            }
        }
        last = match (&last, &token) {
            (Some(word), TokenTree::Punct(mark)) if word == "compile_error" && mark.as_char() == '!' => {
                Some("compile_error !".to_owned())
            }
            (_, TokenTree::Ident(word)) => Some(word.to_string()),
            _ => None,
        };
    }
}

#[test]
fn the_macros_say_what_the_cases_want_and_keep_the_item() {
    let mut said = 0;
    for (path, text) in cases() {
        let file = syn::parse_file(&text).unwrap();
        let mut found = Vec::new();
        for expansion in expand(&file.items) {
            // Whatever is wrong, it is Rust that comes out: an editor goes on working.
            syn::parse2::<syn::File>(expansion.clone()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            sentences(expansion, &mut found);
        }
        let wanted = says(&text);
        for sentence in &found {
            assert!(wanted.contains(&sentence.as_str()), "{}: {sentence}", path.display());
        }
        said += found.len();
    }
    assert!(said > 100, "only {said} sentences come from the macros");
}

#[test]
fn a_body_that_is_being_typed_is_no_mistake_of_the_attribute_and_stays_as_it_is() {
    let body = "let number = order . ; number . unwrap (";
    for (attribute, mistakes) in [("queue = \"orders\"", 0), ("qeue = \"orders\"", 1)] {
        let item = format!("async fn handle(order: Raw) -> Result<(), String> {{ {body} ) }}");
        let expansion = consumer(attribute.parse().unwrap(), &item.parse().unwrap());
        assert!(expansion.to_string().contains(body), "{expansion}");
        let mut found = Vec::new();
        sentences(expansion, &mut found);
        assert_eq!(found.len(), mistakes, "{found:?}");
    }
}

#[test]
fn every_case_says_what_it_wants() {
    for (path, text) in cases() {
        assert!(!says(&text).is_empty(), "{}", path.display());
    }
}
