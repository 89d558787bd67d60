use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// From when on a statement is slow enough to be planned anew.
const SLOW: Duration = Duration::from_millis(100);

/// How often that may be tried.
const PAUSE: Duration = Duration::from_secs(1);

/// A statement whose plan a connection keeps until it turns out to be slow.
///
/// PostgreSQL plans a prepared statement for the size that the table has then. A plan from when the table was all but empty
/// reads all of it, and is kept until the server next looks at the table, which takes up to a minute of heavy traffic. A
/// text that differs in a comment is planned at once.
#[derive(Debug)]
pub(super) struct Planned {
    text: Arc<str>,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    text: Arc<str>,
    number: u32,
    since: Option<Instant>,
}

impl Planned {
    pub(super) fn new(text: String) -> Self {
        let text = Arc::from(text);
        let current = Current { text: Arc::clone(&text), number: 0, since: None };
        Self { text, current: Mutex::new(current) }
    }

    pub(super) fn text(&self) -> Arc<str> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current.text)
    }

    /// Takes note of how long the statement took.
    pub(super) fn took(&self, length: Duration, now: Instant) {
        if length < SLOW {
            return;
        }
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let since = current.since.map(|since| now.duration_since(since));
        if since.is_none_or(|since| since > PAUSE) {
            current.number = current.number.wrapping_add(1);
            current.text = format!("{} /* {} */", self.text, current.number).into();
            current.since = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_statement_is_planned_anew_once_in_a_while() {
        let planned = Planned::new("SELECT 1".to_owned());
        let start = Instant::now();
        let texts: Vec<_> = [(99, 0), (100, 1), (500, 900), (500, 1_100), (1, 5_000)]
            .map(|(took, at)| {
                planned.took(Duration::from_millis(took), start + Duration::from_millis(at));
                planned.text().to_string()
            })
            .into();
        let expected = ["SELECT 1", "SELECT 1 /* 1 */", "SELECT 1 /* 1 */", "SELECT 1 /* 2 */", "SELECT 1 /* 2 */"];
        assert_eq!(texts, expected);
    }
}
