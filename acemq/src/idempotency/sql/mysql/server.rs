use std::sync::{Arc, OnceLock};

use super::super::table::{HOLDER, KEY, STATE, Table};
use super::texts;

/// One text for each of the sizes 1, 2, 4 … 512: few enough for a connection to keep them prepared.
const SIZES: usize = 10;

/// What a server understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    /// An insertion can answer with the rows that it found or made.
    pub(super) returning: bool,
    /// A statement can bring its own limits.
    pub(super) limits: bool,
}

impl Abilities {
    pub(super) const NONE: Self = Self { returning: false, limits: false };

    /// What the version, as the server gives it, says about them.
    pub(super) fn of(version: &str) -> Self {
        let mariadb = version.contains("MariaDB");
        let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0_u32));
        let version = (numbers.next(), numbers.next());
        Self { returning: mariadb && version >= (Some(10), Some(5)), limits: mariadb && version >= (Some(10), Some(2)) }
    }

    /// Ends a statement that others hold up: after a second for a row, after five in all.
    fn limited(self, text: String) -> String {
        if self.limits {
            format!("SET STATEMENT innodb_lock_wait_timeout=1, max_statement_time=5 FOR {text}")
        } else {
            text
        }
    }
}

/// The statements of a table for one server.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) abilities: Abilities,
    pub(super) claim: BySize,
    pub(super) found: BySize,
    pub(super) confirm: BySize,
    pub(super) renew: BySize,
    pub(super) release: BySize,
    pub(super) held: BySize,
    pub(super) lasting: Arc<str>,
    pub(super) purge: BySize,
    pub(super) ended: Arc<str>,
}

impl Texts {
    pub(super) fn new(table: &Table, abilities: Abilities) -> Self {
        let sized = |build: fn(&Table, usize) -> String, ending: Option<String>| BySize {
            table: table.clone(),
            abilities,
            build,
            ending: ending.unwrap_or_default(),
            texts: Default::default(),
        };
        let returning = format!(" RETURNING `{KEY}`, `{HOLDER}`, `{STATE}`");
        Self {
            abilities,
            claim: sized(texts::claim, abilities.returning.then_some(returning)),
            found: sized(texts::found, None),
            confirm: sized(texts::confirm, None),
            renew: sized(texts::renew, None),
            release: sized(texts::release, None),
            held: sized(texts::held, None),
            lasting: abilities.limited(texts::lasting(table)).into(),
            purge: sized(texts::purge, None),
            ended: abilities.limited(texts::ended(table)).into(),
        }
    }
}

/// A statement whose text depends on the number of entries.
#[derive(Debug)]
pub(super) struct BySize {
    table: Table,
    abilities: Abilities,
    build: fn(&Table, usize) -> String,
    ending: String,
    texts: [OnceLock<Arc<str>>; SIZES],
}

impl BySize {
    /// The text for `count` entries or the next size, and that size: the last entry is repeated to fill it.
    pub(super) fn text(&self, count: usize) -> (Arc<str>, usize) {
        let size = count.next_power_of_two();
        let build = || {
            let text = (self.build)(&self.table, size);
            self.abilities.limited(text + &self.ending).into()
        };
        let index = usize::try_from(size.trailing_zeros()).unwrap_or(SIZES);
        let text = match self.texts.get(index) {
            Some(text) => Arc::clone(text.get_or_init(build)),
            None => build(),
        };
        (text, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_says_what_a_server_can_do() {
        let cases = [
            ("10.11.19-MariaDB-0+deb12u1", true, true),
            ("11.4.2-MariaDB", true, true),
            ("10.5.0-MariaDB", true, true),
            ("10.4.34-MariaDB-log", false, true),
            ("10.1.48-MariaDB", false, false),
            ("8.0.36", false, false),
            ("8.4.0-commercial", false, false),
            ("9.1.0", false, false),
            ("10.5", false, false),
            ("", false, false),
        ];
        for (version, returning, limits) in cases {
            let abilities = Abilities { returning, limits };
            assert_eq!(Abilities::of(version), abilities, "{version}");
        }
    }

    #[test]
    fn the_builder_leaves_out_returning_so_it_is_added() {
        let of = |version| Texts::new(&Table::default(), Abilities::of(version));
        let ending = "RETURNING `message_id`, `claimed_by`, `state`";
        let (text, _) = of("10.11.19-MariaDB").claim.text(1);
        assert!(text.ends_with(ending), "{text}");
        assert!(text.starts_with("SET STATEMENT innodb_lock_wait_timeout=1, "), "{text}");
        let (text, _) = of("8.0.36").claim.text(1);
        assert!(!text.contains(ending) && text.starts_with("INSERT"), "{text}");
    }

    #[test]
    fn counts_are_rounded_up_to_few_texts() {
        let texts = Texts::new(&Table::default(), Abilities::of("8.0.36"));
        for (count, size) in [(1, 1), (2, 2), (3, 4), (5, 8), (200, 256), (500, 512)] {
            let (text, rounded) = texts.found.text(count);
            assert_eq!(rounded, size);
            assert_eq!(text.matches('?').count(), size);
            assert!(Arc::ptr_eq(&text, &texts.found.text(size).0));
        }
    }
}
