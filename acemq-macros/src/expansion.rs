//! Keeps `EXPANSION.md` true.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{ItemFn, Meta};

use crate::consumer::consumer;

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("EXPANSION.md")
}

/// The blocks of Rust on the page, with their places.
fn blocks(page: &str) -> Vec<std::ops::Range<usize>> {
    page.match_indices("```rust\n")
        .map(|(open, fence)| {
            let start = open + fence.len();
            start..start + page[start..].find("```").unwrap()
        })
        .collect()
}

/// What the macro makes of a function with the attribute.
fn expanded(source: &str) -> TokenStream {
    let mut function: ItemFn = syn::parse_str(source).unwrap();
    let attribute = function.attrs.remove(0);
    let Meta::List(list) = attribute.meta else { panic!("no options") };
    consumer(list.tokens, &function.to_token_stream())
}

/// The tokens as a person would lay them out; rustfmt comes with the toolchain.
fn formatted(tokens: &TokenStream) -> String {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition=2024", "--config=max_width=100"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    rustfmt.stdin.take().unwrap().write_all(tokens.to_string().as_bytes()).unwrap();
    String::from_utf8(rustfmt.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn the_expansion_on_the_page_is_the_one_of_the_macro() {
    let mut page_text = fs::read_to_string(page()).unwrap();
    let [source, shown] = <[_; 2]>::try_from(blocks(&page_text)).unwrap();
    let expected = formatted(&expanded(&page_text[source]));
    if std::env::var_os("EXPANSION").is_some_and(|wish| wish == "overwrite") {
        page_text.replace_range(shown, &expected);
        fs::write(page(), page_text).unwrap();
        return;
    }
    assert_eq!(
        page_text[shown], expected,
        "`EXPANSION=overwrite cargo test -p acemq-macros` writes the page anew; read it"
    );
}
