//! The account of whatever happens, against what the broker has left.

use std::time::Duration;

use acemq::transport::memory::Memory;
use proptest::prelude::*;

use super::bench::{Bench, QUEUES, adds_up, app, everyone, put};

/// One thing that happens to a running application.
#[derive(Debug, Clone, Copy)]
enum Act {
    Put(usize),
    Go(u8),
    Pause,
    Resume,
    Drain(u16),
    Pass(u32),
    Stop(usize),
    Cut,
    CancelConsumers(usize),
    CloseChannels(usize),
    Stall(bool),
    Nack,
    Hurry,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        12 => (0..QUEUES.len()).prop_map(Act::Put),
        3 => (1_u8..4).prop_map(Act::Go),
        2 => Just(Act::Pause),
        2 => Just(Act::Resume),
        1 => (0_u16..5_000).prop_map(Act::Drain),
        4 => (0_u32..400_000).prop_map(Act::Pass),
        1 => (0..QUEUES.len()).prop_map(Act::Stop),
        1 => Just(Act::Cut),
        1 => (0..QUEUES.len()).prop_map(Act::CancelConsumers),
        1 => (0..QUEUES.len()).prop_map(Act::CloseChannels),
        1 => any::<bool>().prop_map(Act::Stall),
        1 => Just(Act::Nack),
    ];
    let end = prop::option::of(Just(Act::Hurry));
    (prop::collection::vec(act, 0..60), end).prop_map(|(mut acts, end)| {
        acts.extend(end);
        acts
    })
}

async fn play(acts: &[Act]) {
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = everyone(app(&bench, &broker)).start().await.unwrap();
    let mut published = 0;
    let mut hurry = false;
    for act in acts {
        match *act {
            Act::Put(queue) => {
                put(&broker, QUEUES[queue], "1500");
                published += 1;
            }
            Act::Go(count) => bench.go(usize::from(count)),
            Act::Pause => running.pause_consuming(),
            Act::Resume => running.resume_consuming(),
            Act::Drain(millis) => {
                let drained = running.drain(Duration::from_millis(millis.into())).await;
                let left = u64::try_from(drained.left.total()).unwrap();
                assert_eq!(drained.totals.delivered, drained.totals.settled() + left);
            }
            Act::Pass(millis) => tokio::time::sleep(Duration::from_millis(millis.into())).await,
            Act::Stop(queue) => drop(running.stop(QUEUES[queue]).await.unwrap()),
            Act::Cut => broker.cut(),
            Act::CancelConsumers(queue) => broker.cancel_consumers(QUEUES[queue]),
            Act::CloseChannels(queue) => broker.close_channels(QUEUES[queue]),
            Act::Stall(stall) => broker.stall_confirms(stall),
            Act::Nack => broker.nack_next(3),
            Act::Hurry => hurry = true,
        }
    }
    broker.stall_confirms(false);
    let handle = running.handle();
    let started = tokio::time::Instant::now();
    let close = tokio::spawn(running.close());
    if hurry {
        tokio::task::yield_now().await;
        handle.hurry();
    }
    let drained = close.await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(27), "{:?}", started.elapsed());
    assert_eq!(drained.left.total(), 0, "{drained:?}");
    let totals = drained.totals;
    assert_eq!(totals.delivered, totals.settled(), "{drained:?}");
    // A copy may arrive although its confirm does not, and then the message is there twice; it is never gone.
    let there: usize = QUEUES.iter().map(|queue| broker.depth(queue) + broker.depth(&format!("{queue}.dlq"))).sum();
    let accepted = usize::try_from(totals.acked).unwrap();
    assert!(there + accepted >= published, "{published} published: {there} there, {drained:?}");
    if !acts.iter().any(|act| matches!(act, Act::Cut | Act::CloseChannels(_) | Act::Stall(_))) {
        adds_up(&drained, &broker, published);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_happens_the_account_adds_up_and_no_message_is_gone(acts in acts()) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(play(&acts));
    }
}
