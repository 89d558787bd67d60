//! What claims cost: the stores of acemq beside the naive form, one statement for each claim and one for each confirmation,
//! on the same pool and in one go; and the store in memory with a million entries.
//!
//! `cargo bench -p acemq-tests --bench claims`. Each repeat measures both forms, one after the other and in turns first, on
//! an empty table; a ratio is that of one repeat, and what is printed is the median of the repeats with the least and the
//! greatest. The servers are private ones on this machine that force each commit to the disk.
//!
//! `CLAIMS_ON` names what is measured (`postgres,mariadb,sqlite,memory`), `CLAIMS_REPEATS` how often (5), `CLAIMS_MILLIS` how
//! long each time (1500), `CLAIMS_TASKS` how many tasks claim at once (`8,64`).

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on ends")]

mod memory;
mod naive;

use std::{
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use acemq::idempotency::{Claim, Fenced, Token};

use naive::{Bench, Form};

/// Long enough not to end while something is measured.
const LENGTH: Duration = Duration::from_hours(1);

/// How many lone claims of each form are measured.
const LONE: u32 = 1_500;

fn main() {
    let on = setting("CLAIMS_ON", "postgres,mariadb,sqlite,memory".to_owned());
    for what in on.split(',') {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        match what {
            // It is no one's to share, and its figures are those of one thread.
            "memory" => memory::measure(),
            database => runtime.block_on(async { compare(database, &naive::on(database).await).await }),
        }
    }
}

fn setting<T: FromStr>(name: &str, default: T) -> T {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not understood")))
}

async fn compare(database: &str, bench: &Bench) {
    println!("{database}: {}", bench.version);
    lone(bench).await;
    let repeats: u32 = setting("CLAIMS_REPEATS", 5);
    let length = Duration::from_millis(setting("CLAIMS_MILLIS", 1_500));
    let tasks = setting("CLAIMS_TASKS", "8,64".to_owned());
    for tasks in tasks.split(',').map(|tasks| tasks.parse::<u32>().unwrap()) {
        let (mut naive, mut ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for repeat in 0..repeats {
            let mut rates = [0.0; 2];
            let order = if repeat % 2 == 0 { [0, 1] } else { [1, 0] };
            for form in order {
                bench.clear().await;
                rates[form] = rate(&bench.forms[form], tasks, length).await;
            }
            naive.push(rates[0]);
            ours.push(rates[1]);
            ratios.push(rates[1] / rates[0]);
        }
        println!(
            "  {tasks:>3} tasks: naive {:>6.0}, acemq {:>6.0} claims and confirmations/s; ratio {}",
            median(&mut naive),
            median(&mut ours),
            spread(&mut ratios)
        );
    }
}

/// How many pairs of a claim and its confirmation so many tasks do in a second.
async fn rate(form: &Arc<Form>, tasks: u32, length: Duration) -> f64 {
    let stop = Arc::new(AtomicBool::new(false));
    let start = Instant::now();
    let running: Vec<_> = (0..tasks)
        .map(|_| {
            let (form, stop) = (Arc::clone(form), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut done = 0_u32;
                while !stop.load(Ordering::Relaxed) {
                    pair(&form).await;
                    done += 1;
                }
                done
            })
        })
        .collect();
    tokio::time::sleep(length).await;
    stop.store(true, Ordering::Relaxed);
    let mut done = 0.0;
    for task in running {
        done += f64::from(task.await.unwrap());
    }
    done / start.elapsed().as_secs_f64()
}

/// Claims and confirms a key that nobody has used; the time of the claim.
async fn pair(form: &Form) -> Duration {
    let (key, token) = (format!("orders:{}", Token::random().as_str()), Token::random());
    let start = Instant::now();
    assert_eq!(form.claim(&key, &token, LENGTH).await, Claim::Claimed);
    let took = start.elapsed();
    assert_eq!(form.confirm(&key, &token, LENGTH).await, Fenced::Held);
    took
}

/// The latency of a claim that has no company, in turns.
async fn lone(bench: &Bench) {
    bench.clear().await;
    let mut took = [Vec::new(), Vec::new()];
    for turn in 0..LONE {
        for form in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
            took[form].push(pair(&bench.forms[form]).await.as_secs_f64() * 1e6);
        }
    }
    let [naive, ours] = took.each_mut().map(|took| median(took));
    println!("  alone: the median claim takes {naive:.0} µs naive, {ours:.0} µs by acemq; ratio {:.2}", ours / naive);
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn spread(values: &mut [f64]) -> String {
    let median = median(values);
    format!("{median:.2} [{:.2}..{:.2}]", values[0], values[values.len() - 1])
}
