//! Lower layers never import higher ones: read from the `use` lines of every file.

// A test that cannot read the sources fails.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The layer of each module, the most exact name first.
const LAYERS: [(&str, u8); 28] = [
    ("transport::memory", 4),
    ("transport::rabbitmq", 4),
    ("idempotency::memory", 4),
    ("idempotency::sql", 4),
    ("idempotency::conformance", 5),
    ("policy", 0),
    ("envelope", 0),
    ("topology", 1),
    ("handler", 1),
    ("registry", 1),
    ("transport", 2),
    ("idempotency", 2),
    ("engine", 3),
    ("publisher", 3),
    ("telemetry", 3),
    ("drain", 3),
    ("health", 3),
    ("app", 5),
    ("error", 5),
    ("testing", 5),
    ("actuator", 5),
    ("attribute", 5),
    ("__private", 5),
    // What the root re-exports and a lower layer might be tempted to take from there.
    ("App", 5),
    ("Running", 5),
    ("Error", 5),
    ("Drained", 3),
    ("Publisher", 3),
];

fn layer(module: &str) -> Option<u8> {
    LAYERS
        .iter()
        .find(|(name, _)| module == *name || module.strip_prefix(name).is_some_and(|rest| rest.starts_with("::")))
        .map(|(_, layer)| *layer)
}

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

/// The module of a file below `src`.
fn module(path: &Path, root: &Path) -> String {
    let path = path.strip_prefix(root).unwrap().with_extension("");
    let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).filter(|part| *part != "mod").collect();
    parts.join("::")
}

/// Every path that a file names below `crate`, with the braces of its imports taken apart.
fn named(text: &str) -> Vec<String> {
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let paths = code.match_indices("crate::").flat_map(|(at, prefix)| expand(&code[at + prefix.len()..]));
    // A comma after the last one leaves nothing.
    paths.filter(|path| !path.is_empty() && !path.ends_with(':')).collect()
}

fn expand(text: &str) -> Vec<String> {
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect();
    let rest = &text[name.len()..];
    let Some(inner) = rest.strip_prefix('{') else {
        return vec![name];
    };
    let (mut depth, mut start, mut parts) = (1, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            parts.extend(expand(inner[start..at].trim()).into_iter().map(|part| format!("{name}{part}")));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    parts
}

#[test]
fn no_layer_imports_a_higher_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut upward = Vec::new();
    for file in files {
        let module = module(&file, &root);
        // The root re-exports everything.
        let Some(own) = layer(&module) else {
            assert_eq!(module, "lib", "`{module}` has no layer: give it one in this test");
            continue;
        };
        // Tests may use whatever helps them.
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        if module.contains("tests") || module.contains("properties") {
            continue;
        }
        upward.extend(
            named(text)
                .into_iter()
                .filter(|path| layer(path).is_some_and(|other| other > own))
                .map(|path| format!("{module} (layer {own}) names {path}")),
        );
    }
    assert!(upward.is_empty(), "{}", upward.join("\n"));
}

#[test]
fn imports_are_taken_apart() {
    let text = "use crate::{\n    a::B,\n    c::{D, e::{F, G}},\n};\nlet x = crate::h::i();\n// crate::no";
    assert_eq!(named(text), ["a::B", "c::D", "c::e::F", "c::e::G", "h::i"]);
}
