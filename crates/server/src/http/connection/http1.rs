//! HTTP/1: one request after the other, and *parking* between them.
//!
//! An idle connection gives back hyper's state and buffers; a socket and a small task
//! remain. So thousands of idle connections are cheap, and each of them is as good as a new
//! one.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep, timeout};

use super::{ANSWER_MAX, Boxed, HEAD_BYTES_MAX, HEAD_MAX, LINGER_MAX, ReaderProgress, speaks};
use crate::http::service::{Client, HttpService};
use crate::http::transport::{ConnectionActivity, Phase, Socket, Transport};
use crate::stop::Stop;

/// How often a connection that is not parked is checked: every limit is kept within this,
/// and parking takes one to two of it. Short, because allocators do not return memory to
/// the system: what counts is how many connections have buffers at the same time.
const TICK: Duration = Duration::from_millis(100);

/// hyper's buffer for reading and for collecting output: a head must fit.
const BUFFER_BYTES_MAX: usize = HEAD_BYTES_MAX as usize;

/// Headers of a request. SDKs send about twenty.
const HEADERS_MAX: usize = 100;

/// When we close before the client has sent everything, the rest is read and discarded, up
/// to this much: closing at once would destroy the answer.
const LINGER_BYTES_MAX: u64 = 4 << 20;

/// Serves one client that has begun to send its first head.
pub(super) async fn serve(
    mut socket: Socket,
    mut unread: Bytes,
    http: Arc<HttpService>,
    mut stop: Stop,
) {
    while let Next::Parked(parked, begun) = attended(socket, unread, &http, &stop).await {
        if begun.is_empty() && !speaks(parked.tcp(), &http, &mut stop).await {
            return;
        }
        (socket, unread) = (parked, begun);
    }
}

/// What happens next with a connection.
#[derive(Debug)]
enum Next {
    Closed,
    /// Idle. With bytes when the next head has begun to arrive.
    Parked(Socket, Bytes),
}

fn attended(socket: Socket, unread: Bytes, http: &Arc<HttpService>, stop: &Stop) -> Boxed<Next> {
    Box::pin(attend(socket, unread, Arc::clone(http), stop.clone()))
}

/// Lets hyper work until the connection ends, breaks a limit, or can be parked.
async fn attend(socket: Socket, unread: Bytes, http: Arc<HttpService>, mut stop: Stop) -> Next {
    let activity = Arc::new(ConnectionActivity::default());
    let client = Client::new(socket.scheme(), http.process.answers.outbox());
    let service = service_fn(|request| {
        activity.request_begun();
        let (http, activity, client) = (Arc::clone(&http), Arc::clone(&activity), client.clone());
        // Boxed, since hyper can only be stopped between requests if this can move.
        Box::pin(async move {
            let answer = http.answer(request, &client).await;
            activity.request_answered();
            Ok::<_, Infallible>(answer.map(Full::new))
        })
    });
    let transport = Transport::new(socket, Arc::clone(&activity), unread);
    let mut connection = Box::new(protocol().serve_connection(TokioIo::new(transport), service));
    let mut guard = Guard::new(&activity);
    let mut tick = pin!(sleep(TICK));
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            // First, so that whatever is answered after the signal announces that we close.
            () = stop.raised(), if !stopping => {
                stopping = true;
                std::pin::Pin::new(&mut *connection).graceful_shutdown();
            }
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                }
                break;
            }
            () = &mut tick => {
                tick.as_mut().reset(Instant::now() + TICK);
                match guard.look(http.process.answers.is_crowded()) {
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
        .max_header_size(BUFFER_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    builder
}

/// Closes our side. With `linger`, what the client still sends is discarded until it has
/// read our last bytes and leaves.
async fn end(mut transport: Transport, linger: bool) {
    if transport.shutdown().await.is_err() || !linger {
        return;
    }
    let mut rest = transport.take(LINGER_BYTES_MAX);
    let mut scratch = [0; 1024];
    while let Ok(1..) = rest.read(&mut scratch).await {}
}

/// Checks a connection at every tick.
#[derive(Debug)]
struct Guard<'a> {
    activity: &'a ConnectionActivity,
    seen: (Phase, u32),
    /// How long its state has been unchanged.
    unchanged: Duration,
    progress: ReaderProgress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    GoOn,
    Park,
    TooSlow(Phase),
}

impl<'a> Guard<'a> {
    fn new(activity: &'a ConnectionActivity) -> Guard<'a> {
        let (seen, unchanged) = ((Phase::Idle, 0), Duration::ZERO);
        Guard { activity, seen, unchanged, progress: ReaderProgress::default() }
    }

    /// `crowded` says that unread answers take memory from others.
    fn look(&mut self, crowded: bool) -> Verdict {
        let now = (self.activity.phase(), self.activity.requests());
        let waits = now.0 == Phase::Answering;
        if self.progress.is_too_slow(TICK, waits, crowded, self.activity.written()) {
            return Verdict::TooSlow(Phase::Answering);
        }
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
    use super::super::IDLE_MAX;
    use super::*;

    /// The verdicts up to this time, without the last, and the last.
    fn wait(guard: &mut Guard<'_>, time: Duration) -> (Vec<Verdict>, Verdict) {
        let mut verdicts: Vec<Verdict> =
            (0..time.as_millis() / TICK.as_millis()).map(|_| guard.look(false)).collect();
        let last = verdicts.pop().unwrap();
        verdicts.dedup();
        (verdicts, last)
    }

    #[test]
    fn a_head_must_come_in_time() {
        let activity = ConnectionActivity::default();
        activity.head_begun();
        let mut guard = Guard::new(&activity);
        assert_eq!(guard.look(false), Verdict::GoOn);
        let expected = (vec![Verdict::GoOn], Verdict::TooSlow(Phase::Head));
        assert_eq!(wait(&mut guard, HEAD_MAX), expected);
    }

    #[test]
    fn an_answer_must_be_taken_in_time() {
        let activity = ConnectionActivity::default();
        activity.request_begun();
        activity.request_answered();
        activity.set_blocked(true);
        let mut guard = Guard::new(&activity);
        assert_eq!(guard.look(false), Verdict::GoOn);
        let expected = (vec![Verdict::GoOn], Verdict::TooSlow(Phase::Answering));
        assert_eq!(wait(&mut guard, ANSWER_MAX), expected);
        activity.set_blocked(false);
        assert_eq!((guard.look(false), guard.look(false)), (Verdict::GoOn, Verdict::Park));
    }

    #[test]
    fn an_answer_must_be_taken_sooner_when_memory_is_scarce() {
        let activity = ConnectionActivity::default();
        activity.request_begun();
        activity.request_answered();
        activity.set_blocked(true);
        let mut guard = Guard::new(&activity);
        let looks = super::super::ANSWER_CROWDED_MAX.as_millis() / TICK.as_millis();
        let verdicts: Vec<Verdict> = (0..looks).map(|_| guard.look(true)).collect();
        assert_eq!(verdicts.last(), Some(&Verdict::TooSlow(Phase::Answering)));
    }

    #[test]
    fn work_may_take_its_time() {
        let activity = ConnectionActivity::default();
        activity.request_begun();
        let expected = (vec![Verdict::GoOn], Verdict::GoOn);
        assert_eq!(wait(&mut Guard::new(&activity), IDLE_MAX), expected);
    }

    #[test]
    fn only_a_connection_without_requests_is_parked() {
        let activity = ConnectionActivity::default();
        assert_eq!(Guard::new(&activity).look(false), Verdict::Park);
        let mut guard = Guard::new(&activity);
        for _ in 0..100 {
            activity.request_begun();
            activity.request_answered();
            assert_eq!(guard.look(false), Verdict::GoOn);
        }
        assert_eq!(guard.look(false), Verdict::Park);
        activity.head_begun();
        assert_eq!(guard.look(false), Verdict::GoOn);
        assert_eq!(wait(&mut guard, HEAD_MAX).1, Verdict::TooSlow(Phase::Head));
    }
}
