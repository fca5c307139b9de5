//! The bytes of one client, plain or through TLS, and what they reveal.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Where a connection is between one request and the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The head of a request is arriving.
    Head,
    /// A request is being answered. Its body may still be arriving.
    Busy,
    /// The answer is ready, but the client has not read all of it.
    Answering,
    /// Nothing was asked yet, or everything is answered: the client may or may not
    /// continue.
    Idle,
}

/// What the protocol and the transport of a connection report to its guard. Only ever
/// touched by the one task of the connection; atomic because tasks move between threads.
#[derive(Debug, Default)]
pub(crate) struct ConnectionActivity {
    state: AtomicU8,
    blocked: AtomicBool,
    /// Requests begun.
    requests: AtomicU32,
    /// Whether anything arrived besides what was read before.
    has_read: AtomicBool,
    written: AtomicU64,
}

const ANSWERED: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;

impl ConnectionActivity {
    pub(crate) fn request_begun(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.state.store(BUSY, Ordering::Relaxed);
    }

    pub(crate) fn request_answered(&self) {
        self.state.store(ANSWERED, Ordering::Relaxed);
    }

    /// The next request has begun to arrive.
    pub(crate) fn head_begun(&self) {
        self.state.store(HEAD, Ordering::Relaxed);
    }

    /// Only meaningful after the connection was polled: it writes what it can.
    pub(crate) fn phase(&self) -> Phase {
        match self.state.load(Ordering::Relaxed) {
            HEAD => Phase::Head,
            BUSY => Phase::Busy,
            _ if self.is_blocked() => Phase::Answering,
            _ => Phase::Idle,
        }
    }

    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether the client's side currently takes no more bytes.
    pub(crate) fn set_blocked(&self, blocked: bool) {
        self.blocked.store(blocked, Ordering::Relaxed);
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    pub(crate) fn has_read(&self) -> bool {
        self.has_read.load(Ordering::Relaxed)
    }

    /// Bytes that the client's side took.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes_went(&self, len: usize) {
        self.written.fetch_add(len as u64, Ordering::Relaxed);
    }

    pub(crate) fn bytes_came(&self) {
        self.has_read.store(true, Ordering::Relaxed);
        if self.state.load(Ordering::Relaxed) == ANSWERED {
            self.head_begun();
        }
    }
}

/// Both kinds of connection as one.
#[derive(Debug)]
pub(crate) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    pub(crate) fn scheme(&self) -> &'static str {
        match self {
            Socket::Plain(_) => "http",
            Socket::Tls(_) => "https",
        }
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Socket::Plain(tcp) => tcp,
            Socket::Tls(tls) => tls.get_ref().0,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_read(cx, buffer),
            Socket::Tls(tls) => Pin::new(tls).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Socket::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, slices),
            Socket::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Socket::Plain(tcp) => tcp.is_write_vectored(),
            Socket::Tls(tls) => tls.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Socket::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Socket::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

/// Bytes of an answer that are handed to the socket before the worker serves others. The
/// system copies them, and TLS encrypts them: some tens of microseconds.
const WRITE_BYTES_AT_ONCE: usize = 64 << 10;

/// A socket that reports to a [`ConnectionActivity`], and that lets other connections have
/// their turn while a long answer is written.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) socket: Socket,
    activity: Arc<ConnectionActivity>,
    /// Bytes that were read before and not used; they come first.
    unread: Bytes,
    /// Bytes that may be written before others have their turn.
    allowance: usize,
}

impl Transport {
    pub(crate) fn new(
        socket: Socket,
        activity: Arc<ConnectionActivity>,
        unread: Bytes,
    ) -> Transport {
        if !unread.is_empty() {
            activity.head_begun();
        }
        Transport { socket, activity, unread, allowance: WRITE_BYTES_AT_ONCE }
    }

    /// How much may be written now. When that is used up, the task is woken to continue after
    /// others.
    fn poll_allowance(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        if self.allowance == 0 {
            self.allowance = WRITE_BYTES_AT_ONCE;
            cx.waker().wake_by_ref();
            return self.note(Poll::Pending);
        }
        Poll::Ready(self.allowance)
    }

    fn wrote(&mut self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(len)) = result {
            self.allowance = self.allowance.saturating_sub(len);
            self.activity.bytes_went(len);
        }
        self.note(result)
    }

    fn note<T>(&self, result: Poll<T>) -> Poll<T> {
        self.activity.set_blocked(result.is_pending());
        result
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let len = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread.split_to(len));
            return Poll::Ready(Ok(()));
        }
        let before = buffer.remaining();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
        if buffer.remaining() < before {
            self.activity.bytes_came();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let len = ready!(self.poll_allowance(cx));
        let result = Pin::new(&mut self.socket).poll_write(cx, bytes.get(..len).unwrap_or(bytes));
        self.wrote(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let len = ready!(self.poll_allowance(cx));
        let socket = Pin::new(&mut self.socket);
        let result = match slices.iter().map(|slice| slice.len()).sum::<usize>() <= len {
            true => socket.poll_write_vectored(cx, slices),
            false => socket.poll_write_vectored(cx, &first_of(slices, len)),
        };
        self.wrote(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.socket).poll_flush(cx);
        // An answer has been written; the connection waits for its next request.
        if result.is_ready() {
            self.allowance = WRITE_BYTES_AT_ONCE;
        }
        self.note(result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// The first bytes of all slices together.
fn first_of<'a>(slices: &'a [io::IoSlice<'_>], mut len: usize) -> Vec<io::IoSlice<'a>> {
    let mut first = Vec::new();
    for slice in slices {
        let part = slice.get(..len).unwrap_or(slice);
        len -= part.len();
        first.push(io::IoSlice::new(part));
        if len == 0 {
            break;
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    async fn connected() -> (Transport, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (tcp, _) = listener.accept().await.unwrap();
        (Transport::new(Socket::Plain(tcp), Arc::default(), Bytes::new()), client)
    }

    /// Writes all of it, and returns the bytes that were written from one turn to the next.
    async fn write_in_turns(transport: &mut Transport, mut bytes: &[u8]) -> Vec<usize> {
        let mut turns = vec![0];
        poll_fn(|cx| {
            while !bytes.is_empty() {
                let (head, body) = bytes.split_at(bytes.len().min(10));
                let slices = [io::IoSlice::new(head), io::IoSlice::new(body)];
                let Poll::Ready(wrote) = Pin::new(&mut *transport).poll_write_vectored(cx, &slices)
                else {
                    turns.push(0);
                    return Poll::Pending;
                };
                let wrote = wrote.unwrap();
                *turns.last_mut().unwrap() += wrote;
                bytes = &bytes[wrote..];
            }
            Poll::Ready(())
        })
        .await;
        turns
    }

    #[tokio::test]
    async fn others_have_their_turn_while_a_long_answer_is_written() {
        let (mut transport, mut client) = connected().await;
        let answer: Vec<u8> = (0..=250).cycle().take(1 << 20).collect();
        let received = tokio::spawn(async move {
            let mut received = vec![0; 1 << 20];
            client.read_exact(&mut received).await.unwrap();
            received
        });
        let turns = write_in_turns(&mut transport, &answer).await;
        assert!(turns.iter().all(|bytes| *bytes <= WRITE_BYTES_AT_ONCE), "{turns:?}");
        assert_eq!(received.await.unwrap(), answer);
    }

    #[tokio::test]
    async fn short_answers_are_written_at_once_however_many_there_are() {
        let (mut transport, mut client) = connected().await;
        for _ in 0..4 * WRITE_BYTES_AT_ONCE / 1_000 {
            let turns = write_in_turns(&mut transport, &[7; 1_000]).await;
            assert_eq!(turns, [1_000]);
            transport.flush().await.unwrap();
            client.read_exact(&mut [0; 1_000]).await.unwrap();
        }
    }
}
