//! HTTP/2: many requests at a time on one connection.
//!
//! Such a connection cannot be parked: both sides remember headers of earlier requests.
//! Idle it costs about 22 KiB, 29 with TLS, so it gets a GOAWAY when it has been idle for a
//! while; unlike with HTTP/1 no request is lost by that.
//!
//! What one client can make us do is bounded three times. hyper counts streams, resets and
//! bytes of heads, and ends connections that exceed them. [`Guard`] detects stalled
//! connections. And every byte of a body is counted (`crate::http::service`), whichever
//! stream carries it.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::time::{Instant, sleep};

use super::{
    ANSWER_MAX, Boxed, HEAD_BYTES_MAX, HEAD_MAX, IDLE_CROWDED_MAX, LINGER_MAX, ReaderProgress,
    TAKEN_BYTES_MIN,
};
use crate::http::service::{Client, HttpService};
use crate::http::transport::{ConnectionActivity, Socket, Transport};
use crate::stop::Stop;

/// How often a connection is checked: every limit is kept within this. Longer than for
/// HTTP/1, since idle connections are checked as well.
const TICK: Duration = Duration::from_secs(2);

/// A connection without streams gets a GOAWAY after this time.
const IDLE_MAX: Duration = Duration::from_secs(120);

/// Concurrent requests on one connection. As many as clients open before they know the
/// limit, so that a fresh connection is not refused any.
const STREAMS_MAX: u32 = 100;

/// Streams that the client may reset before we have even looked at them. A client that
/// resets more at once is attacking.
const RESETS_PENDING_MAX: usize = 20;

/// Streams that we refuse or reset for the client's mistakes, such as opening more than
/// [`STREAMS_MAX`], before the connection is closed.
const ERRORS_MAX: usize = 256;

/// Bytes of bodies that a client may send before we have read them, for a stream and for
/// all together: the protocol's own default, which is also the minimum.
const WINDOW_BYTES: u32 = 65_535;

/// Payload of a frame: the minimum that the protocol allows.
const FRAME_BYTES_MAX: u32 = 16 << 10;

/// Bytes of an answer that are handed to the connection before the client's window allows
/// them; the rest of it stays where [`Guard`] can see that it does not move.
const ANSWER_CHUNK_BYTES: usize = 16 << 10;

/// A client that has been silent for this long is pinged, and has as long again to respond.
/// This also ends heads that are never completed.
const PING_EVERY: Duration = Duration::from_secs(20);
const PONG_MAX: Duration = Duration::from_secs(20);

/// Serves one client that has sent the preface, which is in `unread`.
pub(super) fn serve(
    socket: Socket,
    unread: Bytes,
    http: Arc<HttpService>,
    stop: Stop,
) -> Boxed<()> {
    Box::pin(attend(socket, unread, http, stop))
}

async fn attend(socket: Socket, unread: Bytes, http: Arc<HttpService>, mut stop: Stop) {
    let activity = Arc::new(ConnectionActivity::default());
    let streams = Arc::new(Streams::default());
    let client = Client::new(socket.scheme(), http.process.answers.outbox());
    let service = service_fn(|request| {
        let (http, client) = (Arc::clone(&http), client.clone());
        let stream = Streams::open(&streams);
        async move {
            let answer = http.answer(request, &client).await;
            Ok::<_, Infallible>(answer.map(|left| AnswerBody { left, answering: stream.answer() }))
        }
    });
    let transport = Transport::new(socket, Arc::clone(&activity), unread);
    let connection = protocol().serve_connection(TokioIo::new(transport), service);
    let mut connection = pin!(connection);
    let mut guard = Guard::new(&activity, &streams);
    let mut tick = pin!(sleep(TICK));
    let mut leaving = false;
    loop {
        tokio::select! {
            biased;
            // First, as in HTTP/1: no request is accepted after the signal was raised.
            () = stop.raised(), if !leaving => leaving = true,
            ended = connection.as_mut() => {
                return if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                };
            }
            () = &mut tick => {
                tick.as_mut().reset(Instant::now() + if leaving { LINGER_MAX } else { TICK });
                let (crowded, scarce) = (http.connections.is_crowded(), http.process.answers.is_crowded());
                match guard.look(crowded, scarce) {
                    _ if leaving && streams.none_open() => return,
                    Verdict::GoOn => continue,
                    Verdict::Leave if leaving => continue,
                    Verdict::Leave => leaving = true,
                    Verdict::TooSlow => {
                        return tracing::debug!("closing a connection that is too slow");
                    }
                }
            }
        }
        connection.as_mut().graceful_shutdown();
        tick.as_mut().reset(Instant::now() + LINGER_MAX);
    }
}

fn protocol() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESETS_PENDING_MAX)
        .max_local_error_reset_streams(ERRORS_MAX)
        .max_header_list_size(u32::from(HEAD_BYTES_MAX))
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES_MAX)
        .max_send_buf_size(ANSWER_CHUNK_BYTES)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_MAX);
    builder
}

/// The streams of a connection, counted.
///
/// Answers are counted in the generation in which they began. When a generation ends,
/// everything of the one before must have been read: so the age of the oldest answer is
/// known without a clock or a list.
#[derive(Debug, Default)]
struct Streams {
    opened: AtomicU32,
    open: AtomicU32,
    generation: AtomicU8,
    answering: [AtomicU32; 2],
    /// Bytes of answers that clients had window for.
    handed: AtomicU64,
}

/// A stream until it ends, for whatever reason.
#[derive(Debug)]
struct OpenStream {
    streams: Arc<Streams>,
}

/// A stream whose answer is ready, until the client has read it.
#[derive(Debug)]
struct Answering {
    stream: OpenStream,
    generation: u8,
}

impl Streams {
    fn open(streams: &Arc<Streams>) -> OpenStream {
        streams.opened.fetch_add(1, Ordering::Relaxed);
        streams.open.fetch_add(1, Ordering::Relaxed);
        OpenStream { streams: Arc::clone(streams) }
    }

    fn none_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) == 0
    }

    fn has_answers(&self) -> bool {
        self.answering.iter().any(|answers| answers.load(Ordering::Relaxed) > 0)
    }

    fn answers_of(&self, generation: u8) -> &AtomicU32 {
        let [even, odd] = &self.answering;
        if generation.is_multiple_of(2) { even } else { odd }
    }

    /// Begins a new generation. Returns whether an answer of the one before the last is
    /// still unread.
    fn turn(&self) -> bool {
        let next = self.generation.load(Ordering::Relaxed).wrapping_add(1);
        let overdue = self.answers_of(next).load(Ordering::Relaxed) > 0;
        self.generation.store(next, Ordering::Relaxed);
        overdue
    }
}

impl OpenStream {
    fn answer(self) -> Answering {
        let generation = self.streams.generation.load(Ordering::Relaxed);
        self.streams.answers_of(generation).fetch_add(1, Ordering::Relaxed);
        Answering { stream: self, generation }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.streams.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.stream.streams.answers_of(self.generation).fetch_sub(1, Ordering::Relaxed);
    }
}

/// An answer in pieces: what exceeds the client's window is not handed over.
#[derive(Debug)]
struct AnswerBody {
    left: Bytes,
    answering: Answering,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let len = self.left.len().min(ANSWER_CHUNK_BYTES);
        let chunk = self.left.split_to(len);
        self.answering.stream.streams.handed.fetch_add(len as u64, Ordering::Relaxed);
        Poll::Ready((len > 0).then(|| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}

/// Checks a connection at every tick.
#[derive(Debug)]
struct Guard<'a> {
    activity: &'a ConnectionActivity,
    streams: &'a Streams,
    /// How long nothing has followed the preface.
    mute: Duration,
    /// How long there has been no stream, and how many there had been.
    idle: (Duration, u32),
    /// How long the client has been blocking, and what it had read before.
    blocked: (Duration, u64),
    /// Age of the generation of answers.
    generation: Duration,
    progress: ReaderProgress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    GoOn,
    /// Idle for long enough.
    Leave,
    TooSlow,
}

impl<'a> Guard<'a> {
    fn new(activity: &'a ConnectionActivity, streams: &'a Streams) -> Guard<'a> {
        let zero = Duration::ZERO;
        let (mute, idle, blocked, generation) = (zero, (zero, 0), (zero, 0), zero);
        Guard {
            activity,
            streams,
            mute,
            idle,
            blocked,
            generation,
            progress: ReaderProgress::default(),
        }
    }

    /// `crowded` says that connection slots are scarce, `scarce` that memory for answers
    /// is.
    fn look(&mut self, crowded: bool, scarce: bool) -> Verdict {
        let (waits, taken) =
            (self.streams.has_answers(), self.streams.handed.load(Ordering::Relaxed));
        let in_the_way = self.progress.is_too_slow(TICK, waits, scarce, taken);
        if in_the_way || self.is_mute() || self.is_blocked() || self.is_answer_overdue() {
            return Verdict::TooSlow;
        }
        let opened = self.streams.opened.load(Ordering::Relaxed);
        if !self.streams.none_open() || opened != self.idle.1 {
            self.idle = (Duration::ZERO, opened);
            return Verdict::GoOn;
        }
        self.idle.0 += TICK;
        let idle_max = if crowded { IDLE_CROWDED_MAX } else { IDLE_MAX };
        if self.idle.0 >= idle_max { Verdict::Leave } else { Verdict::GoOn }
    }

    fn is_mute(&mut self) -> bool {
        self.mute = if self.activity.has_read() { Duration::ZERO } else { self.mute + TICK };
        self.mute >= HEAD_MAX
    }

    fn is_blocked(&mut self) -> bool {
        let written = self.activity.written();
        if !self.activity.is_blocked() {
            self.blocked = (Duration::ZERO, written);
            return false;
        }
        self.blocked.0 += TICK;
        if self.blocked.0 < ANSWER_MAX {
            return false;
        }
        let taken = written - self.blocked.1;
        self.blocked = (Duration::ZERO, written);
        taken < TAKEN_BYTES_MIN
    }

    fn is_answer_overdue(&mut self) -> bool {
        self.generation += TICK;
        if self.generation < ANSWER_MAX {
            return false;
        }
        self.generation = Duration::ZERO;
        self.streams.turn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdicts up to this time, without the last, and the last.
    fn wait(guard: &mut Guard<'_>, time: Duration) -> (Vec<Verdict>, Verdict) {
        let looks = time.as_millis() / TICK.as_millis();
        let mut verdicts: Vec<Verdict> = (0..looks).map(|_| guard.look(false, false)).collect();
        let last = verdicts.pop().unwrap();
        verdicts.dedup();
        (verdicts, last)
    }

    fn greeted() -> (ConnectionActivity, Arc<Streams>) {
        let activity = ConnectionActivity::default();
        activity.bytes_came();
        (activity, Arc::default())
    }

    #[test]
    fn something_must_follow_the_preface() {
        let (activity, streams) = (ConnectionActivity::default(), Arc::default());
        let mut guard = Guard::new(&activity, &streams);
        assert_eq!(wait(&mut guard, HEAD_MAX), (vec![Verdict::GoOn], Verdict::TooSlow));
    }

    #[test]
    fn an_idle_connection_leaves_and_a_used_one_stays() {
        let (activity, streams) = greeted();
        let mut guard = Guard::new(&activity, &streams);
        assert_eq!(wait(&mut guard, IDLE_MAX), (vec![Verdict::GoOn], Verdict::Leave));
        for _ in 0..1000 {
            drop(Streams::open(&streams));
            assert_eq!(guard.look(true, false), Verdict::GoOn);
        }
        let stream = Streams::open(&streams);
        assert_eq!(wait(&mut guard, IDLE_MAX * 2), (vec![Verdict::GoOn], Verdict::GoOn));
        drop(stream);
        let crowded =
            (0..IDLE_CROWDED_MAX.as_secs() / TICK.as_secs()).map(|_| guard.look(true, false));
        assert_eq!(crowded.last(), Some(Verdict::Leave));
    }

    #[test]
    fn an_answer_that_is_not_taken_ends_the_connection() {
        let (activity, streams) = greeted();
        let mut guard = Guard::new(&activity, &streams);
        let _keeps_it_from_being_idle = Streams::open(&streams);
        let stuck = Streams::open(&streams).answer();
        let mut verdicts = (0..2 * ANSWER_MAX.as_secs() / TICK.as_secs()).map(|_| {
            // Others come and go meanwhile.
            drop(Streams::open(&streams).answer());
            guard.look(false, false)
        });
        let at = verdicts.position(|verdict| verdict == Verdict::TooSlow);
        let waited = TICK * u32::try_from(at.unwrap() + 1).unwrap();
        assert!(waited >= ANSWER_MAX && waited <= ANSWER_MAX * 2, "{waited:?}");
        drop(stuck);
        assert_eq!(wait(&mut guard, ANSWER_MAX * 3), (vec![Verdict::GoOn], Verdict::GoOn));
    }

    #[test]
    fn a_client_must_take_what_it_asked_for() {
        let (activity, streams) = greeted();
        let mut guard = Guard::new(&activity, &streams);
        let _keeps_it_from_being_idle = Streams::open(&streams);
        activity.set_blocked(true);
        for _ in 0..3 {
            activity.bytes_went(64 << 10);
            assert_eq!(wait(&mut guard, ANSWER_MAX), (vec![Verdict::GoOn], Verdict::GoOn));
        }
        activity.bytes_went(100);
        assert_eq!(wait(&mut guard, ANSWER_MAX), (vec![Verdict::GoOn], Verdict::TooSlow));
    }

    #[test]
    fn streams_count_until_they_end() {
        let streams = Arc::default();
        let (one, two) = (Streams::open(&streams), Streams::open(&streams).answer());
        drop(one);
        assert!(!streams.none_open());
        drop(two);
        assert!(streams.none_open());
        assert!(streams.answering.iter().all(|count| count.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn an_answer_comes_in_pieces_and_whole() {
        let streams = Arc::default();
        let whole = Bytes::from(vec![7; ANSWER_CHUNK_BYTES * 2 + 5]);
        let answering = Streams::open(&streams).answer();
        let mut body = AnswerBody { left: whole.clone(), answering };
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let (mut came, mut frames) = (Vec::new(), 0);
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) {
            came.extend_from_slice(frame.data_ref().unwrap());
            frames += 1;
        }
        assert_eq!((came.as_slice(), frames), (&whole[..], 3));
        assert!(body.is_end_stream());
    }
}
