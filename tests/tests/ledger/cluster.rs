//! The ledger on three nodes, of which those that lead are killed.

use std::time::Duration;

use acemq_tests::rabbitmq::{Cluster, Version};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::{
    book::Excuses,
    fault::{self, Fault},
    rabbitmq::{Broker, MATURITY},
    trial::{Trial, seeds},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_confirmed_message_is_accounted_for_on_a_cluster_whose_leaders_are_killed() {
    acemq_tests::needs!(RabbitMq4);
    let cluster = Cluster::start(Version::V4, 3).await;
    let broker = Broker::behind_proxy(cluster.node(0), Some(&cluster)).await;
    broker.declare_all().await;
    tokio::time::sleep(MATURITY).await;
    for seed in seeds(1) {
        let mut random = StdRng::seed_from_u64(seed);
        let span = Duration::from_secs(2);
        let mut plan = fault::plan(&mut random, 3, span, fault::cluster);
        // There is no run here without one.
        let killed = Fault::KillLeader { queue: "ledger.rungs", millis: random.random_range(0..3_000) };
        plan.push((span, killed));
        let excuses = Excuses { duplicates: true, crash_loops: false, no_reason: false };
        let letters = random.random_range(30..150);
        let summary = Trial { seed, letters, span, plan, excuses, hold: None }.run(&broker).await;
        println!("three nodes, seed {seed}: {summary}");
        cluster.all_running().await;
    }
}
