//! Private RabbitMQ nodes: started on free ports, killed with the test.
//!
//! ```no_run
//! # async fn test() {
//! use acemq_tests::rabbitmq::{self, Node, Version};
//!
//! // One node for all the tests of this binary: use unique names or a vhost of your own, change nothing global.
//! let shared: &'static Node = rabbitmq::shared(Version::V4).await;
//! let url = shared.url();
//!
//! // A node of this test's own, to be killed, blocked or set up differently.
//! let node = Node::builder(Version::V3).conf("consumer_timeout = 5000").start().await;
//! node.kill();
//! node.start_again().await;
//! # }
//! ```

mod call;
mod cluster;
mod install;
mod manage;
mod node;
mod view;

pub use cluster::Cluster;
pub use install::Version;
pub use node::{Builder, Node};
pub use view::{Binding, Exchange, Queue};

use tokio::sync::OnceCell;

use crate::wait::unique;

/// The node of `version` that all tests of this test binary share; started by the first that asks.
///
/// It is never dropped; the keeper ends it with the process.
pub async fn shared(version: Version) -> &'static Node {
    static V3: OnceCell<Node> = OnceCell::const_new();
    static V4: OnceCell<Node> = OnceCell::const_new();
    let cell = match version {
        Version::V3 => &V3,
        Version::V4 => &V4,
    };
    cell.get_or_init(|| Node::start(version)).await
}

/// A vhost of `node` that no other test uses; `guest` may do everything in it.
pub async fn vhost(node: &'static Node) -> String {
    let name = unique("vhost");
    node.add_vhost(&name).await;
    name
}

/// Writes one test for each RabbitMQ version, as a module of the given name with the tests `rabbitmq_3` and
/// `rabbitmq_4`; each gets the [`shared`] node of its version and is left out only by `ACEMQ_TEST_WITHOUT`.
///
/// ```text
/// use acemq_tests::rabbitmq::Node;
///
/// acemq_tests::on_each_rabbitmq! {
///     async fn a_vhost_answers(node: &'static Node) {
///         acemq_tests::amqp::Client::connect(&node.url()).await;
///     }
/// }
/// ```
#[macro_export]
macro_rules! on_each_rabbitmq {
    ($($(#[$attribute:meta])* async fn $name:ident($node:ident: $type:ty) $body:block)+) => {
        $(
            mod $name {
                #[allow(unused_imports, reason = "a body may name nothing of the module around it")]
                use super::*;

                async fn test($node: $type) $body

                $(#[$attribute])*
                #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn rabbitmq_3() {
                    $crate::needs!(RabbitMq3);
                    test($crate::rabbitmq::shared($crate::rabbitmq::Version::V3).await).await;
                }

                $(#[$attribute])*
                #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn rabbitmq_4() {
                    $crate::needs!(RabbitMq4);
                    test($crate::rabbitmq::shared($crate::rabbitmq::Version::V4).await).await;
                }
            }
        )+
    };
}
