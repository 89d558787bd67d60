//! The tasks that carry bytes.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Direction, End, Rules};

/// How much is read at once, and how many of these may be on their way while they are delayed.
const CHUNK: usize = 16 * 1024;
const ON_THEIR_WAY: usize = 256;

/// How long an orderly end waits for both sides to close too.
const LINGER: Duration = Duration::from_millis(500);

/// When a direction ends its connection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    /// After so many bytes.
    Bytes(u64, End),
    /// In the middle of what is written next.
    HalfOfNext(End),
}

/// What one direction has of its own.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) passed: AtomicU64,
    limit: Mutex<Option<Limit>>,
}

impl Lane {
    pub(super) fn disarm(&self) {
        *lock(&self.limit) = None;
    }

    /// How many of the next `length` bytes may pass, and how the connection ends after them, if it does.
    fn admit(&self, length: usize) -> (usize, Option<End>) {
        let mut limit = lock(&self.limit);
        let (bytes, end) = match *limit {
            None => return (length, None),
            Some(Limit::HalfOfNext(end)) => (length / 2, end),
            Some(Limit::Bytes(bytes, end)) => match usize::try_from(bytes) {
                Ok(bytes) if bytes <= length => (bytes, end),
                _ => {
                    *limit = Some(Limit::Bytes(bytes - length as u64, end));
                    return (length, None);
                }
            },
        };
        *limit = None;
        (bytes, Some(end))
    }
}

/// What the proxy's thread and its owner share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) accepted: AtomicUsize,
    pub(super) listens: AtomicBool,
    lanes: [Lane; 2],
    /// The open connections by their number, each with what ends it.
    open: Mutex<BTreeMap<usize, Option<oneshot::Sender<End>>>>,
}

impl Shared {
    pub(super) fn lane(&self, direction: Direction) -> &Lane {
        &self.lanes[index(direction)]
    }

    pub(super) fn limit(&self, direction: Direction, limit: Limit) {
        *lock(&self.lane(direction).limit) = Some(limit);
    }

    pub(super) fn open(&self) -> usize {
        lock(&self.open).len()
    }

    /// Has every open connection ended and gives their numbers.
    pub(super) fn end_all(&self, end: End) -> Vec<usize> {
        let mut open = lock(&self.open);
        for ender in open.values_mut().filter_map(Option::take) {
            let _ = ender.send(end);
        }
        open.keys().copied().collect()
    }

    /// How many of the connections `numbers` are still open.
    pub(super) fn left_of(&self, numbers: &[usize]) -> usize {
        let open = lock(&self.open);
        numbers.iter().filter(|number| open.contains_key(number)).count()
    }
}

pub(super) fn index(direction: Direction) -> usize {
    match direction {
        Direction::ToServer => 0,
        Direction::ToClient => 1,
    }
}

/// Listens on `address` whenever the rules let it, until `stop`.
pub(super) async fn run(
    address: SocketAddr,
    server: SocketAddr,
    mut rules: watch::Receiver<Rules>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let listening = async {
        loop {
            let _ = rules.wait_for(|rules| !rules.refuses).await;
            let listener = listen(address).await;
            shared.listens.store(true, Ordering::SeqCst);
            let connections = rules.clone();
            tokio::select! {
                () = serve(&listener, server, &connections, &shared) => {}
                _ = rules.wait_for(|rules| rules.refuses) => {}
            }
            drop(listener);
            shared.listens.store(false, Ordering::SeqCst);
        }
    };
    tokio::select! {
        () = listening => {}
        () = stop.cancelled() => {}
    }
}

async fn listen(address: SocketAddr) -> TcpListener {
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            // An end of the listener before may not be through the kernel yet.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("the proxy cannot listen on {address}: {error}"),
        }
    }
}

async fn serve(listener: &TcpListener, server: SocketAddr, rules: &watch::Receiver<Rules>, shared: &Arc<Shared>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
        let (end, ended) = oneshot::channel();
        lock(&shared.open).insert(number, Some(end));
        let (rules, shared) = (rules.clone(), Arc::clone(shared));
        tokio::spawn(async move {
            // A server that is down ends the client's connection too.
            if let Ok(server) = TcpStream::connect(server).await {
                connection(client, server, rules, &shared, ended).await;
            }
            lock(&shared.open).remove(&number);
        });
    }
}

/// Carries one connection until one side or the test ends it.
async fn connection(
    client: TcpStream,
    server: TcpStream,
    rules: watch::Receiver<Rules>,
    shared: &Shared,
    ended: oneshot::Receiver<End>,
) {
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
    }
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = pass(&mut from_client, &mut to_server, Direction::ToServer, rules.clone(), shared);
    let down = pass(&mut from_server, &mut to_client, Direction::ToClient, rules, shared);
    let end = tokio::select! {
        end = both(up, down) => end,
        end = ended => end.unwrap_or(End::Fin),
    };
    let client = from_client.reunite(to_client).expect("they are halves of one stream");
    let server = from_server.reunite(to_server).expect("they are halves of one stream");
    match end {
        End::Fin => finish(client, server).await,
        End::Reset => {
            for stream in [&client, &server] {
                // Closing a socket that lingers for no time sends a reset.
                let _ = stream.set_zero_linger();
            }
        }
    }
}

/// Runs both directions until one of them ends the connection or both have ended by themselves.
async fn both(up: impl Future<Output = Option<End>>, down: impl Future<Output = Option<End>>) -> End {
    tokio::pin!(up, down);
    tokio::select! {
        end = &mut up => match end {
            Some(end) => end,
            None => down.await.unwrap_or(End::Fin),
        },
        end = &mut down => match end {
            Some(end) => end,
            None => up.await.unwrap_or(End::Fin),
        },
    }
}

/// Passes bytes on until `from` ends (`None`, and the end is passed on) or the connection has to be ended.
async fn pass(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    direction: Direction,
    rules: watch::Receiver<Rules>,
    shared: &Shared,
) -> Option<End> {
    let (queue, mut arrived) = mpsc::channel::<(Instant, Vec<u8>)>(ON_THEIR_WAY);
    let mut reading_rules = rules.clone();
    let reading = async move {
        loop {
            unstalled(&mut reading_rules, direction).await;
            let mut chunk = vec![0; CHUNK];
            let read = from.read(&mut chunk).await;
            // A stall that began meanwhile hides an end of the connection too.
            unstalled(&mut reading_rules, direction).await;
            match read {
                Ok(0) => break None,
                // One side has reset its connection; the other must not see an orderly end.
                Err(_) => break Some(End::Reset),
                Ok(length) => chunk.truncate(length),
            }
            let due = Instant::now() + reading_rules.borrow().delay;
            if queue.send((due, chunk)).await.is_err() {
                break None;
            }
        }
    };
    let mut writing_rules = rules;
    let lane = shared.lane(direction);
    let writing = async {
        while let Some((due, chunk)) = arrived.recv().await {
            tokio::time::sleep_until(due).await;
            // It may have been read before the stall.
            unstalled(&mut writing_rules, direction).await;
            let (length, end) = lane.admit(chunk.len());
            // Before the write, so that whoever has read the bytes finds them counted.
            lane.passed.fetch_add(length as u64, Ordering::SeqCst);
            if to.write_all(&chunk[..length]).await.is_err() {
                return Some(End::Reset);
            }
            if end.is_some() {
                return end;
            }
        }
        let _ = to.shutdown().await;
        None
    };
    tokio::pin!(reading, writing);
    tokio::select! {
        end = &mut writing => end,
        end = &mut reading => match end {
            // What is on its way still arrives before an orderly end.
            None => writing.await,
            end => end,
        },
    }
}

async fn unstalled(rules: &mut watch::Receiver<Rules>, direction: Direction) {
    let _ = rules.wait_for(|rules| !rules.stalled[index(direction)]).await;
}

/// Ends both streams in order: what is still unread would turn the end of a closed socket into a reset.
async fn finish(mut client: TcpStream, mut server: TcpStream) {
    for stream in [&mut client, &mut server] {
        let _ = stream.shutdown().await;
    }
    let drained = async {
        let (mut one, mut other) = (tokio::io::sink(), tokio::io::sink());
        tokio::join!(tokio::io::copy(&mut client, &mut one), tokio::io::copy(&mut server, &mut other))
    };
    let _ = tokio::time::timeout(LINGER, drained).await;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
