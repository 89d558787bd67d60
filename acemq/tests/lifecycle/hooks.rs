//! What follows a start and a drain.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use acemq::transport::memory::Memory;

use super::bench::{Bench, app, put, works};

#[tokio::test(start_paused = true)]
async fn the_hooks_see_an_application_that_consumes_and_one_that_is_closed() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (at_start, at_end, watched) = (Arc::clone(&seen), Arc::clone(&seen), broker.clone());
    let running = app(&bench, &broker)
        .consumer::<works>()
        .on_started(move |handle| {
            let at_start = Arc::clone(&at_start);
            async move {
                let subscribed = handle.health().await.consumers.iter().all(|consumer| consumer.subscribed);
                at_start.lock().unwrap().push(format!("subscribed: {subscribed}"));
            }
        })
        .on_drained(move |drained| {
            let connections = watched.view(|view| view.connections());
            at_end.lock().unwrap().push(format!("accepted {}, {connections} connections", drained.totals.acked));
            std::future::ready(())
        })
        .start()
        .await
        .unwrap();
    assert_eq!(*seen.lock().unwrap(), ["subscribed: true"]);
    put(&broker, "works", "a");
    bench.begun(1).await;
    bench.go(1);
    let _ = running.close().await;
    assert_eq!(seen.lock().unwrap()[1], "accepted 1, 0 connections");
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_or_never_ends_keeps_no_account_from_its_reader() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = app(&bench, &broker)
        .consumer::<works>()
        .on_drained(|_| async { panic!("no such log") })
        .on_drained(|_| std::future::pending())
        .start()
        .await
        .unwrap();
    let drained = tokio::time::timeout(Duration::from_secs(6), running.close()).await.unwrap();
    assert!(drained.finished);
}
