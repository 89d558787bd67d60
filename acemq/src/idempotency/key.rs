use std::{borrow::Cow, fmt::Write as _};

use sha2::{Digest, Sha256};

/// The characters that the key column of a table has room for.
const ROOM: usize = 255;

/// What a hashed key begins with; the digest follows in 64 hexadecimal digits.
const HASHED: &str = "sha256:";

/// Whose duplicates a claim is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Those of one queue: two queues that receive one message both handle it.
    #[default]
    Queue,
    /// Those of all who use the store, other libraries of the family among them: the first to claim the message handles it.
    Shared,
}

impl Scope {
    /// Builds the key to claim for the message `id` that arrived on `queue`.
    ///
    /// It is `{queue}:{id}` for [`Scope::Queue`], with `%` and `:` in the queue's name written as `%25` and `%3A` so that no
    /// two pairs share a key, and the bare `id` for [`Scope::Shared`]. A key that does not fit into every store (see
    /// [`fit`]), or that looks like a hashed one, becomes `sha256:` and the SHA-256 digest of that text in hexadecimal.
    #[must_use]
    pub fn key(self, queue: &str, id: &str) -> String {
        let key = match self {
            Self::Queue if queue.contains(['%', ':']) => {
                format!("{}:{id}", queue.replace('%', "%25").replace(':', "%3A"))
            }
            Self::Queue => format!("{queue}:{id}"),
            Self::Shared => id.to_owned(),
        };
        if key.starts_with(HASHED) || unfit(&key) { hash(&key) } else { key }
    }
}

/// Makes a key that every store can hold: `key` itself, or its digest if it is longer than 255 characters, holds a NUL or
/// ends in a blank.
///
/// PostgreSQL cannot store a NUL, MySQL takes `"a "` and `"a"` for one key, and a server that is not strict cuts what is too
/// long.
#[must_use]
pub fn fit(key: &str) -> Cow<'_, str> {
    if unfit(key) { Cow::Owned(hash(key)) } else { Cow::Borrowed(key) }
}

fn unfit(key: &str) -> bool {
    key.ends_with(' ')
        || key.contains('\0')
        // Counting characters is only needed where bytes do not settle it.
        || (key.len() > ROOM && key.chars().nth(ROOM).is_some())
}

fn hash(key: &str) -> String {
    let mut text = String::with_capacity(HASHED.len() + 64);
    text.push_str(HASHED);
    for byte in Sha256::digest(key.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_what_the_family_writes_unless_it_does_not_fit() {
        let long = "x".repeat(256);
        let cases = [
            (Scope::Queue, "orders", "17", "orders:17"),
            (Scope::Shared, "orders", "17", "17"),
            (Scope::Queue, "a:b", "c", "a%3Ab:c"),
            (Scope::Queue, "50%", "c", "50%25:c"),
            (Scope::Shared, "", "Ünïcode 😀", "Ünïcode 😀"),
            // printf 'a ' | sha256sum
            (Scope::Shared, "", "a ", "sha256:6583dcd6056fd32aadd0d2d0be920de99f6ff08b80065e4b9142aaa4169391cb"),
        ];
        for (scope, queue, id, key) in cases {
            assert_eq!(scope.key(queue, id), key);
        }
        for odd in [long.as_str(), "a\0b", "blank ", "sha256:0"] {
            let key = Scope::Shared.key("", odd);
            assert!(key.starts_with("sha256:") && key.len() == 71, "{odd}: {key}");
        }
    }

    #[test]
    fn two_hundred_and_fifty_five_characters_fit_whatever_their_bytes() {
        for character in ["x", "ä", "😀"] {
            let fits = character.repeat(255);
            assert_eq!(fit(&fits), fits);
            assert_ne!(fit(&character.repeat(256)), character.repeat(256));
        }
    }

    #[test]
    fn a_forged_digest_is_not_the_key_that_it_imitates() {
        let long = "x".repeat(300);
        let hashed = Scope::Shared.key("", &long);
        assert_ne!(Scope::Shared.key("", &hashed), hashed);
        assert_ne!(Scope::Queue.key("sha256", "0"), "sha256:0");
    }

    #[test]
    fn no_two_queues_share_a_key() {
        let pairs = [("a", "b:c"), ("a:b", "c"), ("a%3Ab", "c"), ("", "a:b:c"), ("a", ":b:c"), ("a:", "b:c")];
        let keys: HashSet<_> = pairs.iter().map(|(queue, id)| Scope::Queue.key(queue, id)).collect();
        assert_eq!(keys.len(), pairs.len());
    }

    proptest! {
        #[test]
        fn fitting_twice_changes_nothing(key in "\\PC{0,300}[ \\x00]?") {
            let once = fit(&key).into_owned();
            prop_assert_eq!(fit(&once), once.as_str());
            prop_assert!(once.chars().count() <= 255 && !once.contains('\0') && !once.ends_with(' '));
        }

        #[test]
        fn pairs_are_told_apart(a in "[a:%]{0,4}", b in "[a:%]{0,4}", c in "[a:%]{0,4}", d in "[a:%]{0,4}") {
            prop_assert_eq!(Scope::Queue.key(&a, &b) == Scope::Queue.key(&c, &d), a == c && b == d);
        }
    }
}
