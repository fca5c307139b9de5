//! One client from its first byte to its last, and its limits.
//!
//! Reading, parsing and writing are hyper's. This module detects the protocol by the first
//! bytes (TLS or not, HTTP/2 or [`http1`]) and hands the connection over; [`http1`] and
//! [`http2`] put a time limit on every phase in which only the client can make progress.
//!
//! Each connection has one timer that checks its phase periodically instead of one timer
//! per phase: limits are coarse, and requests pay nothing for them.

mod direct;
mod http1;
mod http2;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use wire_rntbd::codec::{SNIFFED_BYTES, is_context_request};

use crate::http::service::HttpService;
use crate::http::transport::Socket;
use crate::stop::Stop;

/// An idle connection is closed after this time. Long, because clients keep pools of
/// connections and lose a request when the server closes one just as it is sent.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// How long an idle connection stays when connection slots become scarce, and how often
/// that is checked.
const IDLE_CROWDED_MAX: Duration = Duration::from_secs(30);

/// A TLS handshake takes a few round trips and some arithmetic.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// The head of a request fits into a packet or two: a client that takes longer is broken or
/// malicious.
const HEAD_MAX: Duration = Duration::from_secs(10);

/// An answer of some megabytes gets through any usable connection in this time.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// How long a client may leave its answers unread when memory for them becomes scarce,
/// unless it reads [`TAKEN_BYTES_MIN`] of them in that time.
const ANSWER_CROWDED_MAX: Duration = Duration::from_secs(5);

/// A client that reads less than this in [`ANSWER_MAX`] while we have something for it is
/// considered gone.
const TAKEN_BYTES_MIN: u64 = 64 << 10;

/// Bytes of all names and values in the head of a request: enough for a continuation of 16
/// KiB and a long session token.
const HEAD_BYTES_MAX: u16 = 32 << 10;

/// How long a client may take to close after we announced that we close.
const LINGER_MAX: Duration = Duration::from_secs(1);

/// The first byte of every TLS connection: a handshake record. No HTTP method
/// begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// What a client that speaks HTTP/2 sends first, over TLS as well. It was designed so that
/// no HTTP/1 request begins with it.
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A boxed future, so that the task of an idle connection does not reserve memory for it.
/// Made by functions that are not async themselves: a future that passes through another
/// one reserves its memory there.
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Serves one client until either side closes.
pub(crate) async fn serve(
    tcp: TcpStream,
    tls: TlsAcceptor,
    http: Arc<HttpService>,
    mut stop: Stop,
) {
    if !speaks(&tcp, &http, &mut stop).await {
        return;
    }
    let direct = http.direct().cloned();
    match greet(tcp, tls, direct.is_some()).await {
        Some((Protocol::Direct, socket, unread)) => {
            if let Some(gateway) = direct {
                direct::serve(socket, unread, http, gateway, stop).await;
            }
        }
        Some((Protocol::Http1, socket, unread)) => http1::serve(socket, unread, http, stop).await,
        Some((Protocol::Http2, socket, unread)) => http2::serve(socket, unread, http, stop).await,
        None => {}
    }
}

/// Waits until a client sends something or leaves. False when the wait ends for another
/// reason. Only the socket is held meanwhile.
async fn speaks(tcp: &TcpStream, http: &HttpService, stop: &mut Stop) -> bool {
    let _parked = http.process.counters.connection_parked();
    let mut waited = Duration::ZERO;
    while waited < IDLE_MAX {
        let readable = tokio::select! {
            readable = timeout(IDLE_CROWDED_MAX, tcp.readable()) => readable,
            () = stop.raised() => return false,
        };
        match readable {
            Ok(readable) => return readable.is_ok(),
            Err(_) if http.connections.is_crowded() => return false,
            Err(_) => waited += IDLE_CROWDED_MAX,
        }
    }
    false
}

/// Whether a client reads its answers, checked at every tick.
#[derive(Debug, Default)]
struct ReaderProgress {
    /// How long answers have been waiting, and what had been read before.
    waited: Duration,
    taken: u64,
}

impl ReaderProgress {
    /// Whether it is time to give its memory to others.
    fn is_too_slow(&mut self, tick: Duration, waits: bool, crowded: bool, taken: u64) -> bool {
        if !waits || taken.saturating_sub(self.taken) >= TAKEN_BYTES_MIN {
            *self = ReaderProgress { waited: Duration::ZERO, taken };
            return false;
        }
        self.waited += tick;
        crowded && self.waited >= ANSWER_CROWDED_MAX
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
    /// Direct mode, in TLS only.
    Direct,
}

/// Detects the protocol of a client, if it sends enough in time. Returns what was read as
/// well.
fn greet(
    tcp: TcpStream,
    tls: TlsAcceptor,
    direct: bool,
) -> Boxed<Option<(Protocol, Socket, Bytes)>> {
    Box::pin(async move {
        let mut socket = match timeout(HANDSHAKE_MAX, open(tcp, tls)).await {
            Ok(Ok(socket)) => socket,
            Ok(Err(error)) => {
                tracing::debug!(%error, "no connection came about");
                return None;
            }
            Err(_) => return None,
        };
        let (protocol, unread) =
            timeout(HEAD_MAX, greeting(&mut socket, direct)).await.ok()?.ok()?;
        Some((protocol, socket, unread))
    })
}

/// Does the TLS handshake if the client begins one.
async fn open(tcp: TcpStream, tls: TlsAcceptor) -> io::Result<Socket> {
    let mut first = [0];
    match (tcp.peek(&mut first).await?, first) {
        (0, _) => Err(io::ErrorKind::UnexpectedEof.into()),
        (_, [TLS_HANDSHAKE]) => Ok(Socket::Tls(Box::new(tls.accept(tcp).await?))),
        (_, _) => Ok(Socket::Plain(tcp)),
    }
}

/// Reads until the protocol is known, and returns what was read. The ALPN result of TLS is
/// ignored: the bytes say the same.
async fn greeting(socket: &mut Socket, direct: bool) -> io::Result<(Protocol, Bytes)> {
    let direct = direct && matches!(socket, Socket::Tls(_));
    let mut buffer = [0; HTTP2_PREFACE.len()];
    let mut len = 0;
    loop {
        let (read, free) = buffer.split_at_mut(len);
        if *read == HTTP2_PREFACE[..] {
            return Ok((Protocol::Http2, Bytes::from_static(HTTP2_PREFACE)));
        }
        if direct && read.first_chunk().is_some_and(is_context_request) {
            return Ok((Protocol::Direct, Bytes::copy_from_slice(read)));
        }
        let undecided = HTTP2_PREFACE.starts_with(read) || direct && may_be_direct(read);
        let came = if undecided { socket.read(free).await? } else { 0 };
        if came == 0 {
            return Ok((Protocol::Http1, Bytes::copy_from_slice(read)));
        }
        len += came;
    }
}

/// Whether the first frame of direct mode could begin so: its length is far below the one that
/// would use the fourth byte. No request of HTTP has a zero there, or is as short as this.
fn may_be_direct(read: &[u8]) -> bool {
    read.len() < SNIFFED_BYTES && read.iter().skip(3).all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes may come one at a time: nothing is decided before it can be.
    #[test]
    fn direct_mode_is_told_from_http_by_eight_bytes() {
        let context = [0x34, 1, 0, 0, 0, 0, 0, 0];
        assert!((0..context.len()).all(|len| may_be_direct(&context[..len])));
        assert!(is_context_request(&context));
        let request = [0x34, 1, 0, 0, 3, 0, 3, 0];
        assert!(!may_be_direct(&request[..5]) && !is_context_request(&request));
        for http in ["GET / HTTP/1.1\r\n", "POST /dbs HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n"] {
            let http = http.as_bytes();
            assert!(!may_be_direct(&http[..4]), "decided by the fourth byte");
            assert!(!http.first_chunk().is_some_and(is_context_request));
        }
    }

    #[test]
    fn who_takes_nothing_leaves_when_memory_is_scarce() {
        const TICK: Duration = Duration::from_secs(1);
        let mut progress = ReaderProgress::default();
        let mut look = |waits, crowded, taken| progress.is_too_slow(TICK, waits, crowded, taken);
        assert!((0..100).all(|_| !look(true, false, 0)), "the memory is not needed");
        assert!(look(true, true, 10), "now somebody does");
        assert!(!look(true, true, TAKEN_BYTES_MIN), "it begins to read");
        assert!((0..4).all(|_| !look(true, true, TAKEN_BYTES_MIN + 1)));
        assert!(!look(false, true, TAKEN_BYTES_MIN + 1), "all is taken");
        assert!((0..4).all(|_| !look(true, true, TAKEN_BYTES_MIN + 1)));
        assert!(look(true, true, TAKEN_BYTES_MIN + 2));
    }
}
