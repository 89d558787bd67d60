//! Several nodes as one cluster.

use std::time::Duration;

use serde_json::Value;

use super::call::quoted;
use super::install::{Install, Version};
use super::node::{Mapper, Node};
use crate::wait::eventually;

/// How long the nodes may take to find each other.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a quorum queue dead-letters, it sends again after so many milliseconds without a confirm, as of a queue whose node
/// was killed; three minutes unless set.
const SENT_AGAIN_AFTER: u64 = 5_000;

/// Private RabbitMQ nodes that form one cluster.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
}

impl Cluster {
    /// Starts a cluster of `size` nodes of `version`.
    pub async fn start(version: Version, size: usize) -> Self {
        let mapper = Mapper::start(&Install::find(version));
        let names: Vec<_> = (1..=size).map(|index| format!("rabbit{index}")).collect();
        let nodes: Vec<_> = names
            .iter()
            .map(|name| {
                let mut builder = Node::builder(version).member(name, mapper.clone());
                builder = builder.advanced(&format!(
                    "[{{rabbit, [{{dead_letter_worker_publisher_confirm_timeout, {SENT_AGAIN_AFTER}}}]}}].\n"
                ));
                builder = builder.conf("cluster_formation.peer_discovery_backend = classic_config");
                for (index, peer) in names.iter().enumerate() {
                    builder = builder
                        .conf(&format!("cluster_formation.classic_config.nodes.{} = {peer}@localhost", index + 1));
                }
                builder.prepare()
            })
            .collect();
        nodes.iter().for_each(Node::launch);
        for node in &nodes {
            node.answered().await;
        }
        let cluster = Self { nodes };
        cluster.all_running().await;
        cluster
    }

    /// The node at `index`, counted from 0.
    pub fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node that leads the quorum queue `queue` of the vhost `/`, or that has the classic one.
    pub async fn leader_of(&self, queue: &str) -> &Node {
        let expression = format!(
            "{{ok, Q}} = rabbit_amqqueue:lookup({{resource, <<\"/\">>, queue, {}}}), \
             case amqqueue:get_pid(Q) of {{_, Leader}} -> Leader; Pid -> node(Pid) end",
            quoted(queue)
        );
        let leader = eventually(PATIENCE, &format!("a leader of {queue}"), async || {
            let mut seen = String::new();
            for node in self.nodes.iter().filter(|node| node.process_id().is_some()) {
                seen = match node.try_eval(&expression).await {
                    Ok(name) => name.trim().trim_matches('\'').to_owned(),
                    Err(error) => error,
                };
                // The others may not have noticed the end of one that is down.
                let leads = |node: &Node| node.name() == seen && node.process_id().is_some();
                if let Some(index) = self.nodes.iter().position(leads) {
                    return Ok(index);
                }
            }
            Err(seen)
        })
        .await;
        &self.nodes[leader]
    }

    /// Waits until every node sees every other.
    pub async fn all_running(&self) {
        for node in &self.nodes {
            eventually(PATIENCE, "all nodes in one cluster", async || {
                let status = node.ctl(["cluster_status", "--formatter", "json"]).await;
                let status: Value = serde_json::from_str(&status).map_err(|_| status)?;
                let running = status["running_nodes"].as_array().map_or(0, Vec::len);
                if running == self.nodes.len() { Ok(()) } else { Err(status["running_nodes"].to_string()) }
            })
            .await;
        }
    }
}
