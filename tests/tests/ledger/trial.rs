//! One run of the ledger: letters, faults, and the count.

use std::{fmt::Write, sync::Arc, time::Duration};

use acemq::{App, Running, transport::Transport};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use tokio::time::Instant;

use super::{
    book::{Book, Excuses, Found},
    fault::Fault,
    script::{self, Letter, Script, WORK},
    store::Store,
};

/// A broker that faults can strike.
pub(crate) trait Ground {
    fn transport(&self) -> Arc<dyn Transport>;

    /// Does what the fault says, or begins it.
    async fn strike(&self, fault: Fault, book: &Book);

    /// Ends every fault, and waits until that is done.
    async fn heal(&self);

    /// Waits until every letter has come to its end, and until each queue has its one consumer again.
    async fn quiet(&self, book: &Book) -> Result<(), String>;

    /// What the broker itself says about the run.
    fn evidence(&self) -> String;

    /// Takes out everything that is left anywhere.
    async fn collect(&self) -> Vec<Found>;
}

/// What a run is made of; all of it follows from the seed.
pub(crate) struct Trial {
    pub(crate) seed: u64,
    pub(crate) letters: u32,
    pub(crate) span: Duration,
    /// What faults strike, and when.
    pub(crate) plan: Vec<(Duration, Fault)>,
    pub(crate) excuses: Excuses,
    /// How long the broker lets a delivery be held, if the run exceeds that.
    pub(crate) hold: Option<u64>,
}

enum Turn {
    Send(Letter, &'static str),
    Fault(Fault),
}

impl Trial {
    pub(crate) fn random(&self) -> StdRng {
        StdRng::seed_from_u64(self.seed ^ 0x001e_d6e5)
    }

    fn timeline(&self) -> Vec<(Duration, Turn)> {
        let mut random = self.random();
        let mut timeline: Vec<_> = self.plan.iter().map(|(at, fault)| (*at, Turn::Fault(*fault))).collect();
        for number in 0..self.letters {
            let at = random.random_range(Duration::ZERO..self.span);
            let (queue, ..) = *WORK.choose(&mut random).unwrap();
            let letter = Letter { run: self.seed, number, script: Script::any(&mut random, queue) };
            timeline.push((at, Turn::Send(letter, queue)));
        }
        if let Some(millis) = self.hold {
            let queue = if random.random_bool(0.5) { "ledger.classic" } else { "ledger.claims" };
            let letter = Letter { run: self.seed, number: self.letters, script: Script::Hold(millis) };
            timeline.push((Duration::ZERO, Turn::Send(letter, queue)));
        }
        timeline.sort_by_key(|(at, _)| *at);
        timeline
    }

    /// Runs to the end, with claims in this store, and gives a summary.
    ///
    /// # Panics
    /// When the books do not balance, with everything that it takes to see why and to do it again.
    pub(crate) async fn run(&self, ground: &impl Ground, store: Store) -> String {
        speak();
        let book = Book::new(self.seed);
        let start = async || {
            let mut last = String::new();
            for _ in 0..200 {
                match app(ground, &book, &store).start().await {
                    Ok(running) => return running,
                    // A start in the middle of a fault may fail, as it should.
                    Err(error) => last = error.to_string(),
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            panic!("seed {}: the application cannot start: {last}\n{}", self.seed, self.story());
        };
        let mut running = start().await;
        let began = Instant::now();
        for (at, turn) in self.timeline() {
            tokio::time::sleep_until(began + at).await;
            match turn {
                Turn::Send(letter, queue) => {
                    book.sending(letter, queue);
                    let publication =
                        running.publisher().to_queue(queue).id(format!("{}-{}", self.seed, letter.number));
                    let book = book.clone();
                    tokio::spawn(async move { book.sent(letter, publication.send(&letter).await.map(drop)) });
                }
                Turn::Fault(Fault::Restart) => {
                    let _ = running.close().await;
                    running = start().await;
                }
                Turn::Fault(Fault::Drop) => {
                    drop(running);
                    running = start().await;
                }
                Turn::Fault(Fault::StoreAway(millis)) => {
                    store.be_away(true);
                    let store = store.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_millis(millis)).await;
                        store.be_away(false);
                    });
                }
                Turn::Fault(fault) => {
                    tracing::info!(?fault, "a fault strikes");
                    ground.strike(fault, &book).await;
                    tracing::info!(?fault, "it has struck");
                }
            }
        }
        ground.heal().await;
        tracing::info!("all is healed");
        let quiet = self.finish(ground, &book, &running).await;
        let disturbed = disturbed(&running).await;
        let drained = running.close().await;
        book.found(ground.collect().await);
        let excuses = Excuses { duplicates: self.excuses.duplicates || disturbed, ..self.excuses };
        let mut problems = book.problems(excuses);
        problems.extend(quiet.err());
        if !drained.finished {
            problems.push("the application did not close in time".to_owned());
        }
        assert!(
            problems.is_empty(),
            "the books of seed {} do not balance (LEDGER_SEED={} runs it again)\n{}\n{}\n{}\n{drained}\n{}",
            self.seed,
            self.seed,
            problems.join("\n"),
            self.story(),
            book.summary(),
            ground.evidence(),
        );
        let word = if disturbed && self.plan.is_empty() { ", disturbed" } else { "" };
        format!("{} faults{word}, {}, {:?}", self.plan.len(), book.summary(), began.elapsed())
    }

    async fn finish(&self, ground: &impl Ground, book: &Book, running: &Running) -> Result<(), String> {
        let mut tries = 0;
        while !book.all_answered() {
            tries += 1;
            if tries > 1_200 {
                return Err("a publish has no answer after two minutes".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        if let Err(problem) = ground.quiet(book).await {
            return Err(format!("{problem}\n{:#?}", running.health().await));
        }
        let settled = tokio::time::timeout(Duration::from_mins(2), running.settled()).await;
        if settled.is_err() {
            let health = running.health().await;
            return Err(format!("deliveries are left, though their queues are empty: {health:?}"));
        }
        Ok(())
    }

    fn story(&self) -> String {
        self.plan.iter().fold(String::new(), |mut story, (at, fault)| {
            let _ = writeln!(story, "  {at:?} {fault:?}");
            story
        })
    }
}

pub(crate) fn app(ground: &impl Ground, book: &Book, store: &Store) -> App {
    App::new()
        .transport(ground.transport())
        .state(book.clone())
        .idempotency(store.clone())
        .drain_timeout(Duration::from_secs(2))
        .grace(Duration::from_millis(500))
        .consumer::<script::short>()
        .consumer::<script::rungs>()
        .consumer::<script::classic>()
        .consumer::<script::claims>()
}

/// Whether a connection or a channel was lost: on a starved machine heartbeats are late without any fault of ours.
async fn disturbed(running: &Running) -> bool {
    let health = running.health().await;
    let lost = [&health.consuming, &health.publishing].iter().any(|connection| connection.last_error.is_some());
    lost || health.consumers.iter().any(|consumer| consumer.resubscribed > 0)
}

/// Lets the application of a run say what it does, if `LEDGER_LOG` is set.
fn speak() {
    if std::env::var_os("LEDGER_LOG").is_some() {
        // It is set already from the second run on.
        let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).try_init();
    }
}

/// The seeds of this run: the one in `LEDGER_SEED`, or as many as `LEDGER_RUNS` says, from `LEDGER_FROM` on.
pub(crate) fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    if let Some(seed) = number("LEDGER_SEED") {
        return seed..seed + 1;
    }
    let from = number("LEDGER_FROM").unwrap_or(1);
    from..from + number("LEDGER_RUNS").unwrap_or(default)
}

/// Every queue of every consumer.
pub(crate) fn all_queues() -> impl Iterator<Item = String> {
    WORK.iter().flat_map(|(queue, _, rungs)| {
        let own = [(*queue).to_owned(), format!("{queue}.dlq"), format!("{queue}.parked")];
        own.into_iter().chain(rungs.iter().map(|rung| (*rung).to_owned()))
    })
}

/// Every queue in which work waits.
pub(crate) fn working_queues() -> impl Iterator<Item = &'static str> {
    WORK.iter().flat_map(|(queue, _, rungs)| std::iter::once(*queue).chain(rungs.iter().copied()))
}
