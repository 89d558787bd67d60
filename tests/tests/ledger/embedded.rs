//! The ledger on the embedded broker, in paused time: thousands of runs in a minute.

use std::{sync::Arc, time::Duration};

use acemq::{
    envelope::headers::{Number, number},
    transport::{Incoming, Transport, memory::Memory},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio_util::task::TaskTracker;

use super::{
    book::{Book, Excuses, Found},
    fault::{self, Fault},
    script::{Letter, WORK},
    store::Store,
    trial::{Ground, Trial, all_queues, seeds, working_queues},
};

struct Embedded {
    broker: Memory,
    heals: TaskTracker,
}

impl Embedded {
    fn later(&self, millis: u64, heal: impl FnOnce(&Memory) + Send + 'static) {
        let broker = self.broker.clone();
        self.heals.spawn(async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            heal(&broker);
        });
    }

    fn lying_in(&self, queue: &str) -> Vec<Found> {
        self.broker.messages(queue).iter().map(|message| found(queue, message)).collect()
    }
}

impl Ground for Embedded {
    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(self.broker.clone())
    }

    async fn strike(&self, fault: Fault, book: &Book) {
        let broker = &self.broker;
        match fault {
            Fault::Cut => broker.cut(),
            Fault::Refuse(millis) => {
                broker.refuse_connections(true);
                broker.cut();
                self.later(millis, |broker| broker.refuse_connections(false));
            }
            Fault::Alarm { millis, .. } => {
                broker.block("low on memory");
                self.later(millis, Memory::unblock);
            }
            Fault::CloseChannels(queue) => broker.close_channels(queue),
            Fault::CancelConsumers(queue) => broker.cancel_consumers(queue),
            Fault::DeleteSource(queue) => {
                // What waits for its retry is not in it.
                let elsewhere = all_queues().filter(|other| other != queue).flat_map(|other| self.lying_in(&other));
                book.source_deleted(queue, &elsewhere.collect::<Vec<_>>());
                broker.delete_queue(queue);
            }
            Fault::DeleteRung(queue) => {
                // What it keeps for a source queue that is away cannot be seen.
                if broker.view(|view| view.kept(queue)) == 0 {
                    book.letters_deleted(&self.lying_in(queue));
                    broker.delete_queue(queue);
                }
            }
            Fault::DeleteAside(source, aside) => {
                let queue = aside.queue(source);
                book.letters_deleted(&self.lying_in(&queue));
                broker.delete_queue(&queue);
            }
            Fault::Nack(count) => broker.nack_next(count),
            Fault::LoseConfirms(count) => broker.lose_confirms(count),
            Fault::StallConfirms(millis) => {
                broker.stall_confirms(true);
                self.later(millis, |broker| broker.stall_confirms(false));
            }
            other => panic!("the embedded broker has no {other:?}"),
        }
    }

    async fn heal(&self) {
        self.heals.close();
        self.heals.wait().await;
        self.broker.nack_next(0);
        self.broker.lose_confirms(0);
    }

    async fn quiet(&self, _: &Book) -> Result<(), String> {
        let quiet = self.broker.wait_until(|view| {
            let alone = WORK.iter().all(|(queue, ..)| view.consumers(queue) == 1);
            alone && working_queues().all(|queue| view.depth(queue) == 0)
        });
        tokio::time::timeout(Duration::from_hours(2), quiet).await.map_err(|_| {
            self.broker.view(|view| {
                let left = working_queues().map(|queue| {
                    let (ready, unacked, kept) = (view.ready(queue), view.unacked(queue), view.kept(queue));
                    format!(
                        "{queue}: {ready} ready, {unacked} unacked, {kept} kept, {} consumers",
                        view.consumers(queue)
                    )
                });
                format!("no rest after two hours: {}", left.collect::<Vec<_>>().join("; "))
            })
        })
    }

    fn evidence(&self) -> String {
        String::new()
    }

    async fn collect(&self) -> Vec<Found> {
        let taken = |queue: String| {
            let messages = self.broker.take(&queue);
            messages.iter().map(|message| found(&queue, message)).collect::<Vec<_>>()
        };
        all_queues().flat_map(taken).collect()
    }
}

fn found(queue: &str, message: &Incoming) -> Found {
    let letter: Letter = serde_json::from_slice(&message.body).unwrap();
    let headers = &message.properties.headers;
    let attempt = match headers.get("x-acemq-attempt").map(number) {
        Some(Number::Whole(attempt)) => u32::try_from(attempt).unwrap(),
        other => panic!("a copy with the attempt {other:?}"),
    };
    let reason = headers.get("x-acemq-error").and_then(|reason| reason.as_text()).map(str::to_owned);
    Found { queue: queue.to_owned(), run: letter.run, number: letter.number, attempt, reason }
}

#[test]
fn every_confirmed_message_is_accounted_for_on_the_embedded_broker() {
    for seed in seeds(300) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let summary = runtime.block_on(async {
            let ground = Embedded { broker: Memory::private(), heals: TaskTracker::new() };
            let mut random = StdRng::seed_from_u64(seed);
            let span = Duration::from_secs(random.random_range(2..60));
            let plan = fault::plan(&mut random, 10, span, fault::embedded);
            let duplicates = !plan.is_empty();
            let excuses = Excuses { duplicates, crash_loops: plan.len() > 5, no_reason: false };
            let letters = random.random_range(20..200);
            Trial { seed, letters, span, plan, excuses, hold: None }.run(&ground, Store::default()).await
        });
        println!("seed {seed}: {summary}");
    }
}
