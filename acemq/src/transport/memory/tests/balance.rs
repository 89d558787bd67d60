use proptest::{collection::vec, prelude::*};

use super::*;
use crate::transport::{Settled, Verdict};

#[derive(Debug, Clone)]
enum Step {
    Publish(&'static str),
    Subscribe(u16),
    Settle(usize, Verdict),
    Cancel(usize),
    Close(usize),
    Drop(usize),
    Wait(u64),
    Cut,
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0..8_usize;
    prop_oneof![
        4 => prop_oneof![Just("classic"), Just("quorum"), Just("rung")].prop_map(Step::Publish),
        2 => (1..4_u16).prop_map(Step::Subscribe),
        4 => any.clone().prop_map(|at| Step::Settle(at, Verdict::Ack)),
        2 => any.clone().prop_map(|at| Step::Settle(at, Verdict::Requeue)),
        1 => any.clone().prop_map(Step::Cancel),
        1 => any.clone().prop_map(Step::Close),
        1 => any.prop_map(Step::Drop),
        1 => (0..2000_u64).prop_map(Step::Wait),
        1 => Just(Step::Cut),
    ]
}

struct Taker {
    subscription: Subscription,
    prefetch: usize,
    held: Vec<u64>,
    open: bool,
}

/// Every message is ready, held, or acknowledged, and nobody holds too many.
async fn balances(steps: Vec<Step>) {
    let unlimited = ("x-delivery-limit", Value::I32(-1));
    let broker = broker(&[
        queue("classic", []),
        queue("quorum", [("x-queue-type", "quorum".into()), unlimited]),
        queue(
            "rung",
            [
                ("x-message-ttl", Value::I32(1000)),
                ("x-dead-letter-exchange", "".into()),
                ("x-dead-letter-routing-key", "quorum".into()),
            ],
        ),
    ]);
    let mut connection = connect(&broker, Role::Consume).await;
    let mut takers: Vec<Taker> = Vec::new();
    let (mut published, mut acked) = (0, 0);
    for step in steps {
        let at = |at: usize, takers: &[Taker]| at.checked_rem(takers.len());
        match step {
            Step::Publish(queue) => {
                fill(&broker, queue, &["m"]);
                published += 1;
            }
            Step::Subscribe(prefetch) => {
                let queue = if takers.len().is_multiple_of(2) { "classic" } else { "quorum" };
                let subscription = subscribe(&connection, queue, prefetch).await.unwrap();
                takers.push(Taker { subscription, prefetch: prefetch.into(), held: Vec::new(), open: true });
            }
            Step::Settle(which, verdict) => {
                let Some(taker) = at(which, &takers).map(|at| &mut takers[at]) else { continue };
                let Some(tag) = (!taker.held.is_empty()).then(|| taker.held.remove(0)) else { continue };
                let settled = taker.subscription.channel.settle(tag, verdict);
                assert_eq!(settled == Settled::Done, taker.open);
                acked += usize::from(taker.open && verdict == Verdict::Ack);
            }
            Step::Cancel(which) => {
                let Some(at) = at(which, &takers) else { continue };
                takers[at].subscription.channel.cancel().await;
            }
            Step::Close(which) => {
                let Some(at) = at(which, &takers) else { continue };
                takers[at].subscription.channel.close().await;
                takers[at].open = false;
            }
            Step::Drop(which) => {
                let Some(at) = at(which, &takers) else { continue };
                takers.remove(at);
            }
            Step::Wait(milliseconds) => tokio::time::advance(Duration::from_millis(milliseconds)).await,
            Step::Cut => {
                broker.cut();
                for taker in &mut takers {
                    taker.open = false;
                }
                connection = connect(&broker, Role::Consume).await;
            }
        }
        // Whoever looks lets due messages move, so this comes before the deliveries.
        let left: usize = ["classic", "quorum", "rung"].iter().map(|queue| broker.depth(queue)).sum();
        assert_eq!(left, published - acked);
        for taker in &mut takers {
            let arrived = arrived(&mut taker.subscription);
            taker.held.extend(arrived.iter().map(|delivery| delivery.tag));
            assert!(taker.held.len() <= taker.prefetch);
        }
        let out: usize = takers.iter().filter(|taker| taker.open).map(|taker| taker.held.len()).sum();
        assert_eq!(broker.unacked("classic") + broker.unacked("quorum"), out);
    }
}

proptest! {
    #[test]
    fn no_message_is_lost_or_doubled_whatever_happens_to_consumers(steps in vec(step(), 0..80)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(balances(steps));
    }
}
