//! The page of guarantees names tests that exist.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

const PAGE: &str = include_str!("../../docs/guarantees.md");

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names of all functions of all sources.
fn functions() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for folder in ["acemq/src", "acemq/tests", "tests/src", "tests/tests"] {
        sources(&root.join(folder), &mut files);
    }
    let mut names = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        for part in text.split("fn ").skip(1) {
            names.insert(part.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned());
        }
    }
    names
}

fn tests_of(item: &str) -> Vec<&str> {
    let in_code = item.split('`').skip(1).step_by(2);
    in_code.filter(|code| code.matches('_').count() > 2 && !code.contains([' ', '.', '/', ':'])).collect()
}

#[test]
fn every_sentence_of_the_page_of_guarantees_is_backed_by_a_test_that_exists() {
    let functions = functions();
    let items: Vec<&str> = PAGE.split("\n- ").skip(1).collect();
    assert!(items.len() > 20, "the page has changed its form");
    for item in items {
        let tests = tests_of(item);
        assert!(!tests.is_empty(), "no test backs this: {item}");
        for test in tests {
            assert!(functions.contains(test), "there is no test `{test}`, which is to back this: {item}");
        }
    }
}
