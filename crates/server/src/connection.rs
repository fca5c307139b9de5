//! One client from its first byte to its last, and what it may not do meanwhile.
//!
//! Reading, parsing and writing are hyper's. This module decides between plain
//! HTTP and TLS, puts a time limit on every phase in which only the client can
//! make progress, and *parks* a connection that has nothing to say: hyper's state
//! and buffers are given back, and a socket and a small task remain. So thousands
//! of idle connections are cheap, and each of them is as good as a new one.
//!
//! One timer per connection looks at the phase once in a while instead of one
//! timer per phase: limits are coarse, and requests pay nothing for them.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::front::Front;
use crate::stop::Stop;
use crate::transport::{Phase, Pulse, Socket, Transport};

/// A connection on which nothing happens is closed after this time. Long, because
/// clients keep pools of connections and lose a request when the server closes
/// one just as it is sent.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// How long an idle connection stays when places become scarce, and how often a
/// parked connection looks whether they are.
const IDLE_CROWDED_MAX: Duration = Duration::from_secs(30);

/// A TLS handshake takes a few round trips and some arithmetic.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// The head of a request fits into a packet or two: whoever takes longer is broken
/// or means harm.
const HEAD_MAX: Duration = Duration::from_secs(10);

/// An answer of some megabytes gets through any usable line in this time.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// How often a connection that is not parked is looked at: every limit is kept
/// within this, and parking takes one to two of it. Short, because allocators do
/// not give memory back to the system: what counts is how many connections have
/// buffers at the same time.
const TICK: Duration = Duration::from_millis(100);

/// Bytes of a request line and all headers: room for a continuation of 16 KiB and a
/// long session token.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// hyper's buffer for reading and for collecting what is written: a head must fit.
const BUFFER_BYTES_MAX: usize = HEAD_BYTES_MAX;

/// Headers of a request. SDKs send about twenty.
const HEADERS_MAX: usize = 100;

/// When we close before the client has sent everything, what still comes is read
/// and thrown away for this long: closing at once would take back the answer.
const LINGER_MAX: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: u64 = 4 << 20;

/// The first byte of every TLS connection: a handshake record. No HTTP method
/// begins with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// Serves one client until either side has had enough.
pub(crate) async fn serve(tcp: TcpStream, tls: TlsAcceptor, front: Arc<Front>, mut stop: Stop) {
    if !speaks(&tcp, &front, &mut stop).await {
        return;
    }
    let mut first = [0];
    let socket = match (timeout(HANDSHAKE_MAX, tcp.peek(&mut first)).await, first) {
        (Ok(Ok(1..)), [TLS_HANDSHAKE]) => match timeout(HANDSHAKE_MAX, tls.accept(tcp)).await {
            Ok(Ok(stream)) => Socket::Tls(Box::new(stream)),
            Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => return tracing::debug!("TLS handshake took too long"),
        },
        (Ok(Ok(1..)), _) => Socket::Plain(tcp),
        // Gone, broken, or woken for nothing.
        (Ok(Ok(0) | Err(_)) | Err(_), _) => return,
    };
    // Boxed, so that a parked connection's task does not keep room for it.
    let mut next = Box::pin(attend(socket, Bytes::new(), &front, stop.clone())).await;
    while let Next::Parked(socket, unread) = next {
        if unread.is_empty() && !speaks(socket.tcp(), &front, &mut stop).await {
            return;
        }
        next = Box::pin(attend(socket, unread, &front, stop.clone())).await;
    }
}

/// Waits until a client sends something or leaves. False when the wait is over for
/// another reason. Nothing but the socket is held meanwhile.
async fn speaks(tcp: &TcpStream, front: &Front, stop: &mut Stop) -> bool {
    let mut waited = Duration::ZERO;
    while waited < IDLE_MAX {
        let readable = tokio::select! {
            readable = timeout(IDLE_CROWDED_MAX, tcp.readable()) => readable,
            () = stop.raised() => return false,
        };
        match readable {
            Ok(readable) => return readable.is_ok(),
            Err(_) if front.room.is_crowded() => return false,
            Err(_) => waited += IDLE_CROWDED_MAX,
        }
    }
    false
}

/// What became of a connection.
#[derive(Debug)]
enum Next {
    Closed,
    /// Nothing to do for now. With bytes when the next head has begun to arrive.
    Parked(Socket, Bytes),
}

/// Lets hyper work until the connection ends, breaks a limit, or can be parked.
async fn attend(socket: Socket, unread: Bytes, front: &Arc<Front>, mut stop: Stop) -> Next {
    let pulse = Arc::new(Pulse::default());
    let scheme = socket.scheme();
    let service = service_fn(|request| {
        pulse.request_begun();
        let (front, pulse) = (Arc::clone(front), Arc::clone(&pulse));
        // Boxed, since hyper can only be stopped between requests if this can move.
        Box::pin(async move {
            let response = front.answer(request, scheme).await;
            pulse.request_answered();
            Ok::<_, Infallible>(response)
        })
    });
    let transport = Transport::new(socket, Arc::clone(&pulse), unread);
    let mut connection = Box::new(protocol().serve_connection(TokioIo::new(transport), service));
    let mut guard = Guard::new(&pulse);
    let mut tick = pin!(sleep(TICK));
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                }
                break;
            }
            () = stop.raised(), if !stopping => {
                stopping = true;
                std::pin::Pin::new(&mut *connection).graceful_shutdown();
            }
            () = &mut tick => {
                tick.as_mut().reset(Instant::now() + TICK);
                match guard.look() {
                    Verdict::GoOn => {}
                    Verdict::Park if stopping => {}
                    Verdict::Park => {
                        let parts = connection.into_parts();
                        // Copied, because an empty slice of hyper's buffer keeps all of it.
                        let unread = Bytes::copy_from_slice(&parts.read_buf);
                        return Next::Parked(parts.io.into_inner().socket, unread);
                    }
                    Verdict::TooSlow(phase) => {
                        tracing::debug!(?phase, "closing a connection that is too slow");
                        return Next::Closed;
                    }
                }
            }
        }
    }
    let transport = connection.into_parts().io.into_inner();
    let _ended_or_not = timeout(LINGER_MAX, end(transport, !stopping)).await;
    Next::Closed
}

fn protocol() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .half_close(true)
        .header_read_timeout(None)
        .max_buf_size(BUFFER_BYTES_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    builder
}

/// Says that there is no more to come. With `linger`, what the client still sends is
/// thrown away until it has read our last words and leaves.
async fn end(mut transport: Transport, linger: bool) {
    if transport.shutdown().await.is_err() || !linger {
        return;
    }
    let mut rest = transport.take(LINGER_BYTES_MAX);
    let mut scratch = [0; 1024];
    while let Ok(1..) = rest.read(&mut scratch).await {}
}

/// Judges a connection at every tick.
#[derive(Debug)]
struct Guard<'a> {
    pulse: &'a Pulse,
    seen: (Phase, u32),
    /// How long it has been as it was seen.
    unchanged: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    GoOn,
    Park,
    TooSlow(Phase),
}

impl<'a> Guard<'a> {
    fn new(pulse: &'a Pulse) -> Guard<'a> {
        Guard { pulse, seen: (Phase::Idle, 0), unchanged: Duration::ZERO }
    }

    fn look(&mut self) -> Verdict {
        let now = (self.pulse.phase(), self.pulse.requests());
        if now != self.seen {
            self.seen = now;
            self.unchanged = Duration::ZERO;
            return Verdict::GoOn;
        }
        self.unchanged += TICK;
        match now.0 {
            Phase::Head if self.unchanged >= HEAD_MAX => Verdict::TooSlow(Phase::Head),
            Phase::Answering if self.unchanged >= ANSWER_MAX => Verdict::TooSlow(Phase::Answering),
            Phase::Idle => Verdict::Park,
            // A request that is being answered has limits of its own.
            Phase::Head | Phase::Answering | Phase::Busy => Verdict::GoOn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdicts up to this time, without the last, and the last.
    fn wait(guard: &mut Guard<'_>, time: Duration) -> (Vec<Verdict>, Verdict) {
        let mut verdicts: Vec<Verdict> =
            (0..time.as_millis() / TICK.as_millis()).map(|_| guard.look()).collect();
        let last = verdicts.pop().unwrap();
        verdicts.dedup();
        (verdicts, last)
    }

    #[test]
    fn a_head_must_come_in_time() {
        let pulse = Pulse::default();
        pulse.head_begun();
        let mut guard = Guard::new(&pulse);
        assert_eq!(guard.look(), Verdict::GoOn);
        let expected = (vec![Verdict::GoOn], Verdict::TooSlow(Phase::Head));
        assert_eq!(wait(&mut guard, HEAD_MAX), expected);
    }

    #[test]
    fn an_answer_must_be_taken_in_time() {
        let pulse = Pulse::default();
        pulse.request_begun();
        pulse.request_answered();
        pulse.set_blocked(true);
        let mut guard = Guard::new(&pulse);
        assert_eq!(guard.look(), Verdict::GoOn);
        let expected = (vec![Verdict::GoOn], Verdict::TooSlow(Phase::Answering));
        assert_eq!(wait(&mut guard, ANSWER_MAX), expected);
        pulse.set_blocked(false);
        assert_eq!((guard.look(), guard.look()), (Verdict::GoOn, Verdict::Park));
    }

    #[test]
    fn work_may_take_its_time() {
        let pulse = Pulse::default();
        pulse.request_begun();
        let expected = (vec![Verdict::GoOn], Verdict::GoOn);
        assert_eq!(wait(&mut Guard::new(&pulse), IDLE_MAX), expected);
    }

    #[test]
    fn only_a_connection_without_requests_is_parked() {
        let pulse = Pulse::default();
        assert_eq!(Guard::new(&pulse).look(), Verdict::Park);
        let mut guard = Guard::new(&pulse);
        for _ in 0..100 {
            pulse.request_begun();
            pulse.request_answered();
            assert_eq!(guard.look(), Verdict::GoOn);
        }
        assert_eq!(guard.look(), Verdict::Park);
        pulse.head_begun();
        assert_eq!(guard.look(), Verdict::GoOn);
        assert_eq!(wait(&mut guard, HEAD_MAX).1, Verdict::TooSlow(Phase::Head));
    }
}
