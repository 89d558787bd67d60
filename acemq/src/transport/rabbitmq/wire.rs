//! The socket under lapin, with a switch that ends it.
//!
//! lapin has no way to give up a connection: while the broker blocks it, not even its close is written, and a peer that
//! accepts and says nothing keeps a thread and a socket for ever. So the socket is opened here and handed to lapin, and
//! cutting it ends everything that lapin hung on it.

use std::{
    fmt, io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use async_rs::{
    Runtime, Tokio,
    traits::Reactor,
    util::{DummyIO, RuntimeParts},
};
use futures_util::{
    io::{AsyncRead, AsyncWrite, IoSlice},
    stream::{self, Stream},
    task::AtomicWaker,
};
use lapin::tcp::AsyncTcpStream;
use tokio::{
    io::{AsyncRead as _, AsyncWrite as _, ReadBuf},
    net::TcpStream,
};

use super::filter::Filter;

/// So much of a body is read past the filter's buffer.
const WORTHWHILE: usize = 32 << 10;

/// A TCP connection, plain or inside TLS.
pub(super) type Socket = AsyncTcpStream<Tcp>;

/// A tokio socket with the traits that lapin asks for.
///
/// lapin's own adapter would start a runtime and a thread for the whole process, as soon as it is polled by a thread that
/// belongs to no runtime, and that is how lapin polls.
#[derive(Debug)]
pub(super) struct Tcp(TcpStream);

impl AsyncRead for Tcp {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Ends a [`Wire`] from outside.
#[derive(Clone, Default)]
pub(super) struct Switch(Arc<SwitchInner>);

#[derive(Default)]
struct SwitchInner {
    cut: AtomicBool,
    reader: AtomicWaker,
    writer: AtomicWaker,
}

impl Switch {
    /// Makes every read and write fail from now on.
    pub(super) fn cut(&self) {
        self.0.cut.store(true, Ordering::SeqCst);
        self.0.reader.wake();
        self.0.writer.wake();
    }

    fn is_cut(&self) -> bool {
        self.0.cut.load(Ordering::SeqCst)
    }

    /// Gives the answer of the socket, unless the switch is cut.
    fn guard<T>(
        &self,
        waker: &AtomicWaker,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if !self.is_cut() {
            let answer = poll(cx);
            if answer.is_ready() {
                return answer;
            }
            waker.register(cx.waker());
            // A cut between the first look and the registration has woken nobody.
            if !self.is_cut() {
                return Poll::Pending;
            }
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, "given up by acemq")))
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Switch").field(&self.is_cut()).finish()
    }
}

/// What lapin reads from and writes to.
pub(super) struct Wire {
    socket: Socket,
    filter: Filter,
    switch: Switch,
}

impl Wire {
    pub(super) fn new(socket: Socket, filter: Filter, switch: Switch) -> Self {
        Self { socket, filter, switch }
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        let Self { socket, filter, switch } = self.get_mut();
        let mut socket = Pin::new(socket);
        loop {
            let taken = filter.take(out);
            if taken > 0 || out.is_empty() {
                return Poll::Ready(Ok(taken));
            }
            let passing = filter.passing().min(out.len());
            if passing >= WORTHWHILE
                && let Some(out) = out.get_mut(..passing)
            {
                let read = ready!(switch.guard(&switch.0.reader, cx, |cx| { socket.as_mut().poll_read(cx, out) }))?;
                filter.passed(read);
                return Poll::Ready(Ok(read));
            }
            let space = filter.space();
            let read = ready!(switch.guard(&switch.0.reader, cx, |cx| { socket.as_mut().poll_read(cx, space) }))?;
            if read == 0 {
                return Poll::Ready(Ok(0));
            }
            filter.filled(read);
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { socket, switch, .. } = self.get_mut();
        switch.guard(&switch.0.writer, cx, |cx| Pin::new(socket).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { socket, switch, .. } = self.get_mut();
        switch.guard(&switch.0.writer, cx, |cx| Pin::new(socket).poll_write_vectored(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { socket, switch, .. } = self.get_mut();
        switch.guard(&switch.0.writer, cx, |cx| Pin::new(socket).poll_flush(cx))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { socket, switch, .. } = self.get_mut();
        if switch.is_cut() {
            // Dropping the socket closes it; a farewell inside TLS could wait for ever.
            return Poll::Ready(Ok(()));
        }
        switch.guard(&switch.0.writer, cx, |cx| Pin::new(socket).poll_close(cx))
    }
}

/// The part of lapin's runtime that knows sockets and time.
///
/// lapin takes the type of its socket from here. It never dials on it: the only socket there is comes from [`dial`].
#[derive(Debug, Clone)]
pub(super) struct Sockets;

/// The runtime that lapin gets, made of the one that this is called in.
pub(super) fn runtime() -> Runtime<RuntimeParts<Tokio, Sockets>> {
    Runtime::new(RuntimeParts::new(Tokio::current(), Sockets))
}

impl Reactor for Sockets {
    type TcpStream = Wire;
    type Sleep = tokio::time::Sleep;

    fn register<H: io::Read + io::Write + Send + 'static>(
        &self,
        _socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        Err::<DummyIO, _>(io::ErrorKind::Unsupported.into())
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        tokio::time::sleep(duration)
    }

    fn interval(&self, duration: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        stream::unfold(tokio::time::interval(duration), |mut interval| async {
            let now = interval.tick().await;
            Some((now.into_std(), interval))
        })
    }

    fn tcp_connect_addr(
        &self,
        _address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        std::future::ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

/// Opens a TCP connection to the first address of the host that answers.
pub(super) async fn dial(host: &str, port: u16) -> io::Result<Socket> {
    let socket = TcpStream::connect((host, port)).await?;
    // lapin gathers frames itself; waiting for more would only delay them.
    socket.set_nodelay(true)?;
    Ok(Socket::Plain(Tcp(socket)))
}

/// A socket that is given away once.
pub(super) struct Once(Mutex<Option<Wire>>);

impl Once {
    pub(super) fn new(wire: Wire) -> Self {
        Self(Mutex::new(Some(wire)))
    }

    pub(super) fn take(&self) -> lapin::Result<AsyncTcpStream<Wire>> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.take() {
            Some(wire) => Ok(AsyncTcpStream::Plain(wire)),
            // lapin dials again after a handshake that broke off early; that is the supervisor's business.
            None => Err(io::Error::from(io::ErrorKind::ConnectionAborted).into()),
        }
    }
}
