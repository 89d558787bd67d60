use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use rand::{RngExt as _, SeedableRng};

use super::*;

fn nothing() {}

#[tokio::test(start_paused = true)]
async fn the_first_in_line_is_the_first_through_whoever_polls_first() {
    let gate = Gate::new(1);
    let first = gate.queue();
    let second = gate.queue();
    let third = gate.queue();
    let held = first.pass(nothing, nothing).await;
    let late = tokio::spawn(third.pass(nothing, nothing));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut early = tokio::spawn(second.pass(nothing, nothing));
    drop(held);
    let slot = (&mut early).await.unwrap();
    assert!(!late.is_finished());
    drop(slot);
    drop(late.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn nothing_passes_a_shut_gate_and_everything_waiting_passes_once_it_opens() {
    let gate = Gate::new(5);
    gate.shut();
    let waiting = tokio::spawn(gate.queue().pass(nothing, nothing));
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(!waiting.is_finished());
    gate.open();
    drop(waiting.await.unwrap());
}

/// Deliveries pass while others shut the gate, read the books, and open it again; a fixed seed makes the pauses.
#[test]
fn whoever_shuts_the_gate_and_finds_nobody_past_it_finds_nobody_later_either() {
    const SEED: u64 = 0xACE;
    const RUNNING: usize = usize::MAX << 32;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap();
    let gate = Arc::new(Gate::new(4));
    let past = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(AtomicBool::new(false));
    let start = Arc::new(Barrier::new(2));
    let operator = std::thread::spawn({
        let (gate, past, done, start) = (Arc::clone(&gate), Arc::clone(&past), Arc::clone(&done), Arc::clone(&start));
        move || {
            let mut random = rand::rngs::StdRng::seed_from_u64(SEED);
            let mut quiet = 0;
            start.wait();
            while !done.load(Ordering::SeqCst) {
                gate.shut();
                // The books count to the bit past the gate: whoever only looked is out again before it runs.
                if past.load(Ordering::SeqCst) == 0 {
                    quiet += 1;
                    for _ in 0..random.random_range(0..200) {
                        assert_eq!(past.load(Ordering::SeqCst) & RUNNING, 0, "somebody passed a shut gate");
                        std::hint::spin_loop();
                    }
                }
                gate.open();
                for _ in 0..random.random_range(0..500) {
                    std::hint::spin_loop();
                }
                std::thread::yield_now();
            }
            quiet
        }
    });
    start.wait();
    runtime.block_on(async {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (gate, past) = (Arc::clone(&gate), Arc::clone(&past));
                tokio::spawn(async move {
                    for _ in 0..5_000 {
                        let entered = || {
                            past.fetch_add(1, Ordering::SeqCst);
                        };
                        let left = || {
                            past.fetch_sub(1, Ordering::SeqCst);
                        };
                        let slot = gate.queue().pass(entered, left).await;
                        past.fetch_add(1 << 32, Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        past.fetch_sub((1 << 32) + 1, Ordering::SeqCst);
                        drop(slot);
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
    });
    done.store(true, Ordering::SeqCst);
    assert!(operator.join().unwrap() > 0, "the gate was never found quiet: the test proves nothing");
}
