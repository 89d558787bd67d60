//! A TCP proxy between a client and a server that can break the connection in every way a network does.
//!
//! It runs on a thread and a runtime of its own, so that a test that starves or pauses its runtime does not starve
//! the network with it.
//!
//! ```no_run
//! # async fn test(node: &acemq_tests::rabbitmq::Node) {
//! use acemq_tests::proxy::{Direction, Proxy};
//!
//! let proxy = Proxy::start(&node.url()).await;
//! // ... connect to proxy.url() ...
//! proxy.cut_after_bytes(Direction::ToServer, 1000); // in the middle of a frame
//! proxy.reset().await;
//! proxy.refuse().await;
//! proxy.accept().await;
//! # }
//! ```

mod pump;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::ports::Ports;
use crate::wait::eventually;
use pump::{Limit, Shared};

/// How long a change of the proxy's state may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// In order: each side reads an end of file.
    Fin,
    /// By a reset: each side sees an error, and what it had not read yet is lost.
    Reset,
}

/// What holds for all connections until it is changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    refuses: bool,
    stalled: [bool; 2],
    delay: Duration,
}

/// A running proxy; it ends, with every connection, when this value is dropped.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    ports: Ports,
    rules: watch::Sender<Rules>,
    shared: Arc<Shared>,
    stop: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy in front of the server in `url`, which has the form `scheme://user:password@host:port/rest`.
    pub async fn start(url: &str) -> Self {
        let (before, host, after) = split(url);
        let server: SocketAddr = host.parse().unwrap_or_else(|error| panic!("{host} in {url}: {error}"));
        let ports = Ports::claim(1);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.port(0)));
        let rules = watch::Sender::new(Rules::default());
        let shared = Arc::new(Shared::default());
        let stop = CancellationToken::new();
        let proxy = pump::run(address, server, rules.subscribe(), Arc::clone(&shared), stop.clone());
        let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be built").block_on(proxy);
        });
        let thread = Some(thread.expect("a thread can be started"));
        let proxy = Self { url: format!("{before}{address}{after}"), ports, rules, shared, stop, thread };
        proxy.listens(true).await;
        proxy
    }

    /// The address that it was given, with the proxy in place of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.ports.port(0)
    }

    /// How many connections it has accepted since its start.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open now.
    pub fn open(&self) -> usize {
        self.shared.open()
    }

    /// How many bytes it has passed on in `direction` since its start.
    pub fn passed(&self, direction: Direction) -> u64 {
        self.shared.lane(direction).passed.load(Ordering::SeqCst)
    }

    /// Ends every open connection in order, and waits until that is done.
    pub async fn cut(&self) {
        self.end_all(End::Fin).await;
    }

    /// Resets every open connection, and waits until that is done.
    pub async fn reset(&self) {
        self.end_all(End::Reset).await;
    }

    /// Resets the connection on which the client writes next, with half of what it wrote passed on.
    pub fn reset_mid_write(&self) {
        self.shared.limit(Direction::ToServer, Limit::HalfOfNext(End::Reset));
    }

    /// Ends the connection that takes what passes in `direction` over `bytes`, counted from now; everything before
    /// that is passed on. It happens once; a later connection is not affected.
    pub fn end_after_bytes(&self, direction: Direction, bytes: u64, end: End) {
        self.shared.limit(direction, Limit::Bytes(bytes, end));
    }

    /// [`Proxy::end_after_bytes`] in order.
    pub fn cut_after_bytes(&self, direction: Direction, bytes: u64) {
        self.end_after_bytes(direction, bytes, End::Fin);
    }

    /// Takes back [`Proxy::reset_mid_write`] and [`Proxy::end_after_bytes`] where they have not struck yet.
    pub fn disarm(&self) {
        for direction in [Direction::ToServer, Direction::ToClient] {
            self.shared.lane(direction).disarm();
        }
    }

    /// Passes nothing on in `direction`, on open and new connections; nothing is lost, [`Proxy::resume`] goes on.
    ///
    /// To both sides it looks like a network that lost its route: no error, no answer, and a sender whose buffers
    /// fill up.
    pub fn stall(&self, direction: Direction) {
        self.rules.send_modify(|rules| rules.stalled[pump::index(direction)] = true);
    }

    /// [`Proxy::stall`] in both directions; a new connection is accepted and gets no answer.
    pub fn stall_both(&self) {
        self.rules.send_modify(|rules| rules.stalled = [true; 2]);
    }

    /// Ends [`Proxy::stall`].
    pub fn resume(&self) {
        self.rules.send_modify(|rules| rules.stalled = [false; 2]);
    }

    /// Holds every byte for `delay`, in both directions.
    pub fn delay(&self, delay: Duration) {
        self.rules.send_modify(|rules| rules.delay = delay);
    }

    /// Stops listening, so that new connections are refused; open ones stay.
    pub async fn refuse(&self) {
        self.rules.send_modify(|rules| rules.refuses = true);
        self.listens(false).await;
    }

    /// Listens again after [`Proxy::refuse`], on the same port.
    pub async fn accept(&self) {
        self.rules.send_modify(|rules| rules.refuses = false);
        self.listens(true).await;
    }

    /// Waits until it has accepted `count` connections since its start.
    pub async fn has_accepted(&self, count: usize, deadline: Duration) {
        eventually(deadline, &format!("{count} connections through the proxy"), async || {
            let accepted = self.accepted();
            if accepted >= count { Ok(()) } else { Err(accepted) }
        })
        .await;
    }

    async fn listens(&self, expected: bool) {
        eventually(PATIENCE, "the listener of the proxy", async || {
            let listens = self.shared.listens.load(Ordering::SeqCst);
            if listens == expected { Ok(()) } else { Err(listens) }
        })
        .await;
    }

    async fn end_all(&self, end: End) {
        let ended = self.shared.end_all(end);
        eventually(PATIENCE, "the end of the connections through the proxy", async || {
            let left = self.shared.left_of(&ended);
            if left == 0 { Ok(()) } else { Err(left) }
        })
        .await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Splits an address into what is before, the host with its port, and what comes after.
fn split(url: &str) -> (&str, &str, &str) {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?']).map_or(url.len(), |at| start + at);
    let start = url[start..end].rfind('@').map_or(start, |at| start + at + 1);
    (&url[..start], &url[start..end], &url[end..])
}

#[cfg(test)]
mod tests;
