use std::io::ErrorKind;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::wait::within;

const SOON: Duration = Duration::from_secs(5);
/// Long enough to see that nothing comes.
const QUIET: Duration = Duration::from_millis(100);

/// A server that sends back what it gets, behind a proxy.
async fn echo() -> Proxy {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    Proxy::start(&format!("echo://user:p%40ss@{address}/rest?a=b")).await
}

async fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
    proxy.has_accepted(1, SOON).await;
    stream
}

/// Writes `text` and reads it back.
async fn round_trip(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = vec![0; text.len()];
    within(SOON, "an echo", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, text.as_bytes());
}

/// Everything that comes until the end, and how that end looks.
async fn rest(stream: &mut TcpStream) -> (usize, Result<(), ErrorKind>) {
    let mut all = Vec::new();
    let end = within(SOON, "the end of a connection", stream.read_to_end(&mut all)).await;
    (all.len(), end.map(|_| ()).map_err(|error| error.kind()))
}

async fn is_quiet(stream: &mut TcpStream) -> bool {
    tokio::time::timeout(QUIET, stream.read_u8()).await.is_err()
}

#[tokio::test]
async fn bytes_pass_both_ways_and_are_counted() {
    let proxy = echo().await;
    assert_eq!(proxy.url(), format!("echo://user:p%40ss@127.0.0.1:{}/rest?a=b", proxy.port()));
    let mut stream = connect(&proxy).await;
    round_trip(&mut stream, "hello").await;
    assert_eq!((proxy.accepted(), proxy.open()), (1, 1));
    assert_eq!((proxy.passed(Direction::ToServer), proxy.passed(Direction::ToClient)), (5, 5));
    stream.shutdown().await.unwrap();
    assert_eq!(rest(&mut stream).await, (0, Ok(())), "the end of one side goes through to the other");
}

#[tokio::test]
async fn a_cut_is_an_end_of_file_and_a_reset_is_an_error() {
    let proxy = echo().await;
    let mut stream = connect(&proxy).await;
    round_trip(&mut stream, "hello").await;
    proxy.cut().await;
    assert_eq!(proxy.open(), 0);
    assert_eq!(rest(&mut stream).await, (0, Ok(())));

    let mut stream = connect(&proxy).await;
    round_trip(&mut stream, "hello").await;
    proxy.reset().await;
    assert_eq!(rest(&mut stream).await, (0, Err(ErrorKind::ConnectionReset)));

    let mut stream = connect(&proxy).await;
    round_trip(&mut stream, "a later connection works").await;
    assert_eq!(proxy.accepted(), 3);
}

#[tokio::test]
async fn a_limit_ends_one_connection_at_the_exact_byte() {
    for (end, seen) in [(End::Fin, Ok(())), (End::Reset, Err(ErrorKind::ConnectionReset))] {
        let proxy = echo().await;
        let mut stream = connect(&proxy).await;
        round_trip(&mut stream, "hello").await;
        proxy.end_after_bytes(Direction::ToClient, 7, end);
        round_trip(&mut stream, "hello").await;
        stream.write_all(b"hello").await.unwrap();
        let (length, how) = rest(&mut stream).await;
        // A reset may overtake the last bytes.
        assert!(length == 2 || (length == 0 && end == End::Reset), "{length}");
        assert_eq!(how, seen);
        assert_eq!(proxy.passed(Direction::ToClient), 12);
        let mut stream = connect(&proxy).await;
        round_trip(&mut stream, "it happens once").await;
    }
}

#[tokio::test]
async fn a_reset_mid_write_passes_half_of_a_write() {
    let proxy = echo().await;
    let mut stream = connect(&proxy).await;
    proxy.reset_mid_write();
    stream.write_all(&[0; 100]).await.unwrap();
    assert_eq!(rest(&mut stream).await.1, Err(ErrorKind::ConnectionReset));
    assert_eq!(proxy.passed(Direction::ToServer), 50);
}

#[tokio::test]
async fn a_stall_loses_nothing() {
    let proxy = echo().await;
    let mut stream = connect(&proxy).await;
    for direction in [Direction::ToServer, Direction::ToClient] {
        round_trip(&mut stream, "hello").await;
        proxy.stall(direction);
        stream.write_all(b"!").await.unwrap();
        assert!(is_quiet(&mut stream).await, "{direction:?}");
        proxy.resume();
        assert_eq!(within(SOON, "a byte", stream.read_u8()).await.unwrap(), b'!');
    }
    proxy.stall_both();
    let mut second = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
    second.write_all(b"?").await.unwrap();
    assert!(is_quiet(&mut second).await, "a new connection is accepted and gets no answer");
    proxy.resume();
    assert_eq!(within(SOON, "a byte", second.read_u8()).await.unwrap(), b'?');
}

#[tokio::test]
async fn a_stalled_connection_can_be_reset() {
    let proxy = echo().await;
    let mut stream = connect(&proxy).await;
    proxy.stall_both();
    // More than every buffer on the way holds.
    let written = tokio::time::timeout(QUIET, stream.write_all(&vec![0; 64 << 20])).await;
    assert!(written.is_err(), "the buffers of a stalled connection fill up");
    proxy.reset().await;
    let error = within(SOON, "an error", stream.write_all(&[0])).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
}

#[tokio::test]
async fn a_delay_holds_bytes_without_holding_up_those_behind_them() {
    let proxy = echo().await;
    let mut stream = connect(&proxy).await;
    proxy.delay(QUIET);
    // The first chunk may have been waited for before the delay was set.
    round_trip(&mut stream, "first").await;
    let start = Instant::now();
    for _ in 0..10 {
        stream.write_all(b"0123456789").await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut answer = [0; 100];
    within(SOON, "an echo", stream.read_exact(&mut answer)).await.unwrap();
    let took = start.elapsed();
    assert!(took >= QUIET * 2, "{took:?}");
    assert!(took < QUIET * 10, "{took:?}");
}

#[tokio::test]
async fn a_refused_connection_fails_and_open_ones_stay() {
    let proxy = echo().await;
    let mut stream = connect(&proxy).await;
    round_trip(&mut stream, "hello").await;
    proxy.refuse().await;
    let refused = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    round_trip(&mut stream, "still here").await;
    proxy.accept().await;
    round_trip(&mut connect(&proxy).await, "hello").await;
}

#[tokio::test]
async fn a_server_that_is_down_ends_the_connection() {
    let port = Ports::claim(1);
    let proxy = Proxy::start(&format!("127.0.0.1:{}", port.port(0))).await;
    let mut stream = connect(&proxy).await;
    assert_eq!(rest(&mut stream).await, (0, Ok(())));
}
