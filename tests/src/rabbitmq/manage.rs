//! What an operator does to a node: users, vhosts, alarms, queues, connections.

use std::time::Duration;

use super::call::quoted;
use super::node::Node;
use super::view::{self, Binding, Exchange, Queue};
use crate::wait::eventually;

/// How long an alarm may take to be seen.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who does all this, in the log of the node.
const ACTOR: &str = "<<\"tests\">>";

impl Node {
    /// Makes a vhost; `guest` may do everything in it.
    pub async fn add_vhost(&self, name: &str) {
        self.eval(&format!("ok = rabbit_vhost:add({}, {ACTOR})", quoted(name))).await;
        self.permit("guest", name, [".*"; 3]).await;
    }

    /// Makes a user who may configure, write and read in `vhost` what the three regular expressions match.
    pub async fn add_user(&self, name: &str, password: &str, vhost: &str, may: [&str; 3]) {
        let [user, password] = [name, password].map(quoted);
        self.eval(&format!("ok = rabbit_auth_backend_internal:add_user({user}, {password}, {ACTOR})")).await;
        self.permit(name, vhost, may).await;
    }

    /// Sets what a user may configure, write and read in `vhost`.
    pub async fn permit(&self, name: &str, vhost: &str, may: [&str; 3]) {
        let [user, vhost] = [name, vhost].map(quoted);
        let may = may.map(quoted).join(", ");
        self.eval(&format!("ok = rabbit_auth_backend_internal:set_permissions({user}, {vhost}, {may}, {ACTOR})")).await;
    }

    /// The queues of the vhost `/`; a quorum queue's counts lag by a tenth of a second, so wait for them by
    /// [`eventually`].
    pub async fn queues(&self) -> Vec<Queue> {
        self.queues_in("/").await
    }

    /// The queues of `vhost`.
    pub async fn queues_in(&self, vhost: &str) -> Vec<Queue> {
        self.list("rabbit_amqqueue", vhost, &view::QUEUE).await
    }

    /// The queue `name` of the vhost `/`, if it is there.
    pub async fn queue(&self, name: &str) -> Option<Queue> {
        self.queues().await.into_iter().find(|queue| queue.name == name)
    }

    /// The bindings of the vhost `/`, sorted.
    pub async fn bindings(&self) -> Vec<Binding> {
        self.bindings_in("/").await
    }

    /// The bindings of `vhost`, sorted.
    pub async fn bindings_in(&self, vhost: &str) -> Vec<Binding> {
        let mut bindings: Vec<Binding> = self.list("rabbit_binding", vhost, &view::BINDING).await;
        bindings.sort();
        bindings
    }

    /// The exchanges of the vhost `/`.
    pub async fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges_in("/").await
    }

    /// The exchanges of `vhost`.
    pub async fn exchanges_in(&self, vhost: &str) -> Vec<Exchange> {
        self.list("rabbit_exchange", vhost, &view::EXCHANGE).await
    }

    async fn list<T: serde::de::DeserializeOwned>(&self, module: &str, vhost: &str, columns: &[&str]) -> Vec<T> {
        self.table(&format!("{module}:info_all({}, [{}])", quoted(vhost), columns.join(", "))).await
    }

    /// Deletes the queue `name` of the vhost `/` with everything in it, as an operator does.
    pub async fn delete_queue(&self, name: &str) {
        self.eval(&format!(
            "{{ok, Queue}} = rabbit_amqqueue:lookup({{resource, <<\"/\">>, queue, {}}}), \
             {{ok, _}} = rabbit_amqqueue:delete(Queue, false, false, {ACTOR})",
            quoted(name)
        ))
        .await;
    }

    /// Closes every connection from the side of the broker.
    pub async fn close_all_connections(&self) {
        let reason = "<<\"closed by a test\">>";
        self.eval(&format!("rabbit_networking:close_connections(rabbit_networking:connections(), {reason})")).await;
    }

    /// Raises the alarm for memory: the node blocks every connection that publishes.
    pub async fn block_memory(&self) {
        self.eval("vm_memory_monitor:set_vm_memory_high_watermark(1.0e-7)").await;
        self.alarms(true).await;
    }

    /// Raises the alarm for disk space.
    pub async fn block_disk(&self) {
        self.eval("rabbit_disk_monitor:set_disk_free_limit(\"1000000GB\")").await;
        self.alarms(true).await;
    }

    /// Clears both alarms.
    pub async fn unblock(&self) {
        self.eval("vm_memory_monitor:set_vm_memory_high_watermark(0.6)").await;
        self.eval("rabbit_disk_monitor:set_disk_free_limit(\"1MB\")").await;
        self.alarms(false).await;
    }

    async fn alarms(&self, raised: bool) {
        let what = if raised { "an alarm" } else { "the end of all alarms" };
        eventually(PATIENCE, what, async || {
            let alarms = self.eval("rabbit_alarm:get_alarms()").await;
            if raised == (alarms != "[]") { Ok(()) } else { Err(alarms) }
        })
        .await;
    }

    /// Has the node write the definitions of its queues, exchanges and bindings to disk, so that they survive
    /// [`Node::kill`].
    pub async fn write_out(&self) {
        self.eval("catch mnesia:sync_log()").await;
    }
}
