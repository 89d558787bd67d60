use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The uses of a plan before the first new one; each further one serves four times as many.
const FIRST: u64 = 8;

/// From when on a statement is slow enough to be planned anew.
const SLOW: Duration = Duration::from_millis(100);

/// How soon that may be tried again; twice as long after each try that did not help.
const PAUSE: Duration = Duration::from_secs(1);

/// A statement that is planned anew as the table grows.
///
/// PostgreSQL plans a prepared statement for the size that the table has then. A plan from when the table was all but empty
/// reads all of it, and is kept until the server next looks at the table, which takes up to a minute of heavy traffic. So
/// each time that the statement has been used four times as often, and when it turns out to be slow, its text changes in a
/// comment: such a text is planned at once.
#[derive(Debug)]
pub(super) struct Planned {
    text: Arc<str>,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    text: Arc<str>,
    number: u32,
    uses: u64,
    /// The number of uses at which there is to be a new plan.
    until: u64,
    since: Option<Instant>,
    pause: Duration,
}

impl Planned {
    pub(super) fn new(text: String) -> Self {
        let text = Arc::from(text);
        let current = Current { text: Arc::clone(&text), number: 0, uses: 0, until: FIRST, since: None, pause: PAUSE };
        Self { text, current: Mutex::new(current) }
    }

    /// The text to use now.
    pub(super) fn text(&self) -> Arc<str> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.uses += 1;
        if current.uses > current.until {
            current.until = current.until.saturating_mul(4);
            self.replan(&mut current);
        }
        Arc::clone(&current.text)
    }

    /// Takes note of how long the statement took.
    pub(super) fn took(&self, length: Duration, now: Instant) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if length < SLOW {
            current.pause = PAUSE;
            return;
        }
        let since = current.since.map(|since| now.duration_since(since));
        if since.is_none_or(|since| since > current.pause) {
            if since.is_some() {
                current.pause = current.pause.saturating_mul(2);
            }
            self.replan(&mut current);
            current.since = Some(now);
        }
    }

    fn replan(&self, current: &mut Current) {
        current.number = current.number.wrapping_add(1);
        current.text = format!("{} /* {} */", self.text, current.number).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_planned_anew_ever_more_rarely() {
        let planned = Planned::new("SELECT 1".to_owned());
        let texts: Vec<_> = (0..600).map(|_| planned.text().to_string()).collect();
        let new: Vec<_> = (1..600).filter(|at| texts[*at] != texts[at - 1]).collect();
        assert_eq!(new, [8, 32, 128, 512]);
        assert_eq!([&*texts[0], &*texts[8]], ["SELECT 1", "SELECT 1 /* 1 */"]);
    }

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

    #[test]
    fn a_statement_that_stays_slow_is_planned_anew_ever_more_rarely() {
        let planned = Planned::new("SELECT 1".to_owned());
        let start = Instant::now();
        let number = || planned.current.lock().unwrap().number;
        let numbers: Vec<_> = (0..70_u64)
            .map(|at| {
                planned.took(SLOW, start + Duration::from_millis(at * 1_001));
                number()
            })
            .collect();
        let new: Vec<_> = (1..70).filter(|at| numbers[*at] != numbers[at - 1]).collect();
        assert_eq!(new, [1, 3, 7, 15, 31, 63]);
        planned.took(Duration::ZERO, start + Duration::from_secs(80));
        planned.took(SLOW, start + Duration::from_secs(81));
        planned.took(SLOW, start + Duration::from_secs(84));
        assert_eq!(number(), 9, "after a fast one it is tried as often as before");
    }
}
