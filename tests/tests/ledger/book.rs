//! The books of one run: what was published, what handlers did, and what is found in the end.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use acemq::SendError;

use super::script::{End, Letter, Script, WORK};

/// The books of one run; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Book(Arc<Mutex<Pages>>);

#[derive(Debug)]
struct Pages {
    run: u64,
    letters: BTreeMap<u32, Page>,
    problems: Vec<String>,
}

#[derive(Debug)]
struct Page {
    queue: &'static str,
    script: Script,
    sent: Sent,
    /// The attempts of the handler's calls, in their order.
    calls: Vec<u32>,
    accepted: u32,
    found: Vec<Found>,
    /// Whether a fault may have deleted it with its queue.
    deleted: bool,
}

/// What became of a publish.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Sent {
    Open,
    Confirmed,
    /// Nothing was written.
    Refused,
    /// The broker said no, but a queue of several may have it.
    Nacked(String),
    Unknown(String),
}

/// A letter as it lay in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub queue: String,
    pub run: u64,
    pub number: u32,
    pub attempt: u32,
    pub reason: Option<String>,
}

/// What faults a run had, as far as the books have to know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Excuses {
    /// Copies may have been made: any fault at all.
    pub duplicates: bool,
    /// The broker may have taken messages back often.
    pub crash_loops: bool,
    /// The broker gives up by itself what was taken back too often, or has no other place for it.
    pub no_reason: bool,
}

impl Book {
    pub(crate) fn new(run: u64) -> Self {
        Self(Arc::new(Mutex::new(Pages { run, letters: BTreeMap::new(), problems: Vec::new() })))
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a letter that is about to be published.
    pub(crate) fn sending(&self, letter: Letter, queue: &'static str) {
        let page = Page {
            queue,
            script: letter.script,
            sent: Sent::Open,
            calls: Vec::new(),
            accepted: 0,
            found: Vec::new(),
            deleted: false,
        };
        self.pages().letters.insert(letter.number, page);
    }

    pub(crate) fn sent(&self, letter: Letter, result: Result<(), SendError>) {
        let mut pages = self.pages();
        let page = pages.letters.get_mut(&letter.number).unwrap();
        page.sent = match result {
            Ok(()) => Sent::Confirmed,
            // What a queue that is not there turned away is nowhere, as the publisher was told.
            Err(SendError::Refused { .. } | SendError::Unroutable { .. }) => Sent::Refused,
            Err(SendError::Failed(error)) => Sent::Nacked(error.to_string()),
            Err(error) => Sent::Unknown(error.to_string()),
        };
    }

    /// Whether every publish has its answer.
    pub(crate) fn all_answered(&self) -> bool {
        self.pages().letters.values().all(|page| page.sent != Sent::Open)
    }

    /// The confirmed letters that have not come to their end.
    pub(crate) fn open(&self) -> Vec<u32> {
        let pages = self.pages();
        let open =
            pages.letters.iter().filter(|(_, page)| page.sent == Sent::Confirmed && !page.ended() && !page.deleted);
        open.map(|(number, _)| *number).collect()
    }

    /// Notes a call of a handler and says how many there were before it.
    pub(crate) fn called(&self, letter: Letter, queue: &str, attempt: u32) -> usize {
        let mut pages = self.pages();
        if letter.run != pages.run {
            // A copy that a fault of an earlier run left somewhere.
            return 0;
        }
        let page = pages.letters.get_mut(&letter.number).unwrap();
        page.calls.push(attempt);
        let (before, expected) = (page.calls.len() - 1, page.queue);
        if queue != expected {
            pages.problems.push(format!("{letter:?} of {expected} was handled by {queue}"));
        }
        before
    }

    pub(crate) fn accepted(&self, letter: Letter) {
        let mut pages = self.pages();
        if letter.run == pages.run
            && let Some(page) = pages.letters.get_mut(&letter.number)
        {
            page.accepted += 1;
        }
    }

    /// Excuses what a fault may have deleted: everything of a source queue but what is known to lie elsewhere.
    pub(crate) fn source_deleted(&self, queue: &str, elsewhere: &[Found]) {
        for (number, page) in &mut self.pages().letters {
            page.deleted |= page.queue == queue && !elsewhere.iter().any(|found| found.number == *number);
        }
    }

    /// Excuses every letter of a source queue that is retried at some time: its rung was deleted.
    pub(crate) fn rung_deleted(&self, queue: &str) {
        for page in self.pages().letters.values_mut() {
            let retried = matches!(page.script, Script::Fail(_) | Script::Always | Script::Panic | Script::TimeOut);
            page.deleted |= page.queue == queue && retried;
        }
    }

    /// Excuses what a fault deleted, by what lay there.
    pub(crate) fn letters_deleted(&self, letters: &[Found]) {
        let mut pages = self.pages();
        for letter in letters {
            if let Some(page) = pages.letters.get_mut(&letter.number) {
                page.deleted = true;
                // It was there, so it counts as found too.
                page.found.push(letter.clone());
            }
        }
    }

    /// Excuses everything that a queue for what is set aside may have held.
    pub(crate) fn aside_deleted(&self, queue: &str, end: End) {
        for page in self.pages().letters.values_mut() {
            page.deleted |= page.queue == queue && page.script.end() == end;
        }
    }

    pub(crate) fn found(&self, letters: Vec<Found>) {
        let mut pages = self.pages();
        for letter in letters {
            if letter.run == pages.run
                && let Some(page) = pages.letters.get_mut(&letter.number)
            {
                page.found.push(letter);
            } else if letter.run >= pages.run {
                pages.problems.push(format!("a stranger was found: {letter:?}"));
            }
        }
    }

    /// Where the letters stand, in a few words.
    pub(crate) fn summary(&self) -> String {
        let pages = self.pages();
        let all = pages.letters.values();
        let confirmed = all.clone().filter(|page| page.sent == Sent::Confirmed).count();
        let accepted = all.clone().filter(|page| page.accepted > 0).count();
        let calls: usize = all.clone().map(|page| page.calls.len()).sum();
        let twice = all.clone().filter(|page| page.accepted > 1).count();
        let deleted = all.clone().filter(|page| page.deleted).count();
        format!(
            "{} letters, {confirmed} confirmed, {calls} calls, {accepted} accepted, {twice} of them twice, {deleted} excused",
            pages.letters.len()
        )
    }

    /// Everything that does not balance.
    pub(crate) fn problems(&self, excuses: Excuses) -> Vec<String> {
        let pages = self.pages();
        let mut problems = pages.problems.clone();
        for (number, page) in &pages.letters {
            let told: Vec<String> = check(page, excuses);
            problems.extend(told.into_iter().map(|problem| format!("letter {number}: {problem}; {page:?}")));
        }
        problems
    }
}

impl Page {
    fn set_aside(&self) -> usize {
        self.found.iter().filter(|found| aside(&found.queue)).count()
    }

    fn ended(&self) -> bool {
        self.accepted > 0 || self.set_aside() > 0
    }
}

/// Whether a queue is one for what is set aside.
pub(crate) fn aside(queue: &str) -> bool {
    WORK.iter()
        .any(|(source, ..)| queue.strip_prefix(source).is_some_and(|suffix| matches!(suffix, ".dlq" | ".parked")))
}

fn check(page: &Page, excuses: Excuses) -> Vec<String> {
    let mut problems = Vec::new();
    let mut must = |holds: bool, problem: &str| {
        if !holds {
            problems.push(problem.to_owned());
        }
    };
    let appeared = page.accepted > 0 || !page.calls.is_empty() || !page.found.is_empty();
    must(page.sent != Sent::Open, "its publish has no answer");
    must(page.sent != Sent::Refused || !appeared, "its publisher was told that nothing was sent");

    let last = WORK.iter().find(|(queue, ..)| *queue == page.queue).map_or(0, |(_, last, _)| *last);
    must(page.calls.iter().all(|attempt| (1..=last).contains(attempt)), "an attempt that its policy does not have");
    must(page.found.iter().all(|found| (1..=last).contains(&found.attempt)), "a copy beyond its policy");
    for found in page.found.iter().filter(|found| aside(&found.queue)) {
        let reason = found.reason.as_deref().unwrap_or_default();
        must(excuses.no_reason || !reason.is_empty(), "set aside without a reason");
        let crash = reason.starts_with("crash loop");
        must(!crash || excuses.crash_loops, "set aside for a crash loop that there was not");
        let expected = match page.script.end() {
            _ if crash || (excuses.no_reason && reason.is_empty()) => continue,
            End::DeadLetter => format!("{}.dlq", page.queue),
            End::Parked => format!("{}.parked", page.queue),
            End::Handled => String::new(),
        };
        must(found.queue == expected, "set aside where it does not belong");
        if page.script == Script::Always {
            must(found.attempt == last, "given up before its last attempt");
        }
    }

    let somewhere = page.ended() || !page.found.is_empty();
    must(page.sent != Sent::Confirmed || somewhere || page.deleted, "CONFIRMED AND NOWHERE");
    must(page.accepted == 0 || page.script.end() == End::Handled, "accepted against its script");

    let ends = usize::try_from(page.accepted).unwrap_or(usize::MAX) + page.set_aside();
    let mut attempts = page.calls.clone();
    attempts.sort_unstable();
    let repeated = attempts.windows(2).any(|pair| pair[0] == pair[1]);
    must(excuses.duplicates || (ends <= 1 && !repeated), "a duplicate without a fault");
    if page.queue == "ledger.claims" {
        must(page.accepted <= 1, "accepted twice in spite of its claim");
    }
    problems
}
