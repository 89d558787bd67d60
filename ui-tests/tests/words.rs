//! What is said of each mistake, apart from how a compiler lays it out: our sentences, all of them, and nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fail");
    let folder =
        |path: &Path| -> Vec<PathBuf> { fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect() };
    let mut cases: Vec<PathBuf> = folder(&root).iter().flat_map(|family| folder(family)).collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    cases.sort();
    cases
}

/// The headings of what the compiler said, without its own words around ours.
fn errors(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("error"))
        .filter_map(|line| line.split_once(": "))
        .map(|(_, sentence)| sentence.strip_prefix("evaluation panicked: ").unwrap_or(sentence))
        .collect()
}

#[test]
fn each_mistake_is_said_once_and_nothing_else_is() {
    for path in cases() {
        let text = fs::read_to_string(&path).unwrap();
        let mut wanted: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("// says: ")).collect();
        let said = fs::read_to_string(path.with_extension("stderr")).unwrap();
        let mut said_sentences = errors(&said);
        wanted.sort_unstable();
        said_sentences.sort_unstable();
        assert_eq!(said_sentences, wanted, "{}", path.display());
        assert!(!said.starts_with("warning") && !said.contains("\nwarning"), "{} warns as well", path.display());
    }
}

#[test]
fn there_are_cases_of_every_family() {
    let cases = cases();
    assert!(cases.len() >= 80, "{} cases", cases.len());
    for family in ["attribute", "policy", "signature", "types", "impl-block", "registry", "derive"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fail").join(family);
        assert!(cases.iter().any(|case| case.starts_with(&folder)), "no case of {family}");
    }
}
