//! Which of the words that are known somebody may have meant.

/// The known word that is closest, if it is close enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = match word.chars().count() {
        0..=2 => 0,
        3..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be changed, added, left out or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    let mut previous = None;
    for (row, letter) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let at = |line: &[usize], place: usize| line.get(place).copied().unwrap_or(usize::MAX);
            let changed = at(&above, column) + usize::from(letter != *other);
            let added = at(&current, column).min(at(&above, column + 1)) + 1;
            let mut best = changed.min(added);
            if column > 0 && previous == Some(*other) && right.get(column - 1) == Some(&letter) {
                best = best.min(at(&before, column - 1).saturating_add(1));
            }
            current.push(best);
        }
        before = std::mem::replace(&mut above, current);
        previous = Some(letter);
    }
    above.last().copied().unwrap_or_default()
}

/// The words as a sentence lists them: `` `a`, `b` or `c` ``.
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["queue", "retry", "prefetch", "timeout", "exponential"];
        for (word, expected) in [
            ("prefetc", Some("prefetch")),
            ("perfetch", Some("prefetch")),
            ("que", None),
            ("queu", Some("queue")),
            ("queeu", Some("queue")),
            ("rerty", Some("retry")),
            ("time_out", Some("timeout")),
            ("exponental", Some("exponential")),
            ("speed", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }

    #[test]
    fn words_are_listed_as_in_a_sentence() {
        assert_eq!(list([]), "");
        assert_eq!(list(["a"]), "`a`");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
