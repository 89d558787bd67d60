//! Keeps `docs/attribute.md` true: it has every option and setting there is, and no other, with the defaults of the engine.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use acemq::{
    policy::duration,
    registry::{ConsumerSpec, Idempotent},
};

use crate::{
    args::{IDEMPOTENT, OPTIONS},
    entries::Table,
    message::SETTINGS,
    retry::{EXPONENTIAL, FIXED},
};

/// The rows of the first table under a heading.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/attribute.md")).unwrap();
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let table = section.lines().skip_while(|line| !line.starts_with("| ")).take_while(|line| line.starts_with('|'));
    table.skip(2).map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The first word in backticks.
fn code(cell: &str) -> &str {
    cell.split('`').nth(1).unwrap()
}

#[test]
fn the_page_has_every_option_and_setting_and_no_other() {
    for (heading, tables) in [
        ("Options", &[&OPTIONS] as &[&Table]),
        ("The policy", &[&FIXED, &EXPONENTIAL]),
        ("Duplicates", &[&IDEMPOTENT]),
        ("Types of messages", &[&SETTINGS]),
    ] {
        let rows = rows(heading);
        let shown: Vec<&str> = rows.iter().map(|row| code(&row[0])).collect();
        let there: BTreeSet<&str> = tables.iter().flat_map(|table| table.known).map(|known| known.name).collect();
        assert_eq!(shown.iter().copied().collect::<BTreeSet<&str>>(), there, "{heading}");
        assert_eq!(shown.len(), there.len(), "{heading}");
        assert!(rows.iter().all(|row| row.len() == 4), "{heading}");
    }
}

#[test]
fn the_defaults_on_the_page_are_those_of_the_engine() {
    let default = |heading, name: &str| -> String {
        let row = rows(heading).into_iter().find(|row| code(&row[0]) == name).unwrap();
        code(&row[2]).trim_matches('"').to_owned()
    };
    assert_eq!(default("Options", "prefetch"), ConsumerSpec::PREFETCH.to_string());
    for (heading, name, expected) in [
        ("Options", "retry_delay", ConsumerSpec::new("q").retry.schedule().next().unwrap().delay),
        ("The policy", "wait_in_broker_from", Duration::from_secs(30)),
        ("Duplicates", "retention", Idempotent::DEFAULT.retention),
        ("Duplicates", "claim", Idempotent::DEFAULT.claim),
        ("Duplicates", "in_progress_delay", Idempotent::DEFAULT.in_progress_delay),
    ] {
        assert_eq!(duration(&default(heading, name)), expected, "{name}");
    }
}
