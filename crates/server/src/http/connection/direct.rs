//! Direct mode: frames, many requests at a time, answers in any order.
//!
//! One half of the connection reads frames and starts a task for each, the other writes what is
//! answered. A request has a slot from its first byte until its answer has been written, and
//! without a free slot the socket is not read: that bounds what one client can have under way, and
//! a client that does not read gets no further answers. Slots are the only thing that requests of
//! a connection wait for, so a slow query does not hold up the others.
//!
//! Idle connections stay. A client that loses one takes all addresses of this server for broken.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use wire_cosmos::BODY_BYTES_MAX;
use wire_rntbd::codec::{Extent, FrameError};
use wire_rntbd::{DirectAnswer, DirectGateway, DirectLetIn};

use super::{ANSWER_CROWDED_MAX, ANSWER_MAX, Boxed, HEAD_MAX, LINGER_MAX};
use crate::http::service::direct::DirectRequest;
use crate::http::service::{BodyPermit, Client, HttpService, STRANGER_DISCARD_BYTES_MAX};
use crate::http::transport::Socket;
use crate::stop::Stop;

/// Requests under way on one connection. Java and .NET send up to 30 on one and then open another.
const REQUESTS_MAX: usize = 64;

/// Bytes that are read at once, until a payload is known to be longer: most requests fit.
const READ_BYTES: usize = 4 << 10;

/// A payload gets through any usable connection in this time.
const PAYLOAD_MAX: Duration = Duration::from_secs(30);

/// Answers are collected up to this length when several are ready: one write, one TLS record or
/// few. A longer payload is written by itself, without being copied.
const WRITE_BYTES: usize = 16 << 10;

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Socket(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("the first frame opens no connection")]
    Context,
    #[error("a request has no id")]
    Nameless,
    #[error("a payload of {bytes} bytes")]
    Payload { bytes: usize },
    #[error("the client is too slow")]
    TooSlow,
}

/// An answer on its way out, with its slot.
#[derive(Debug)]
struct Outgoing {
    answer: DirectAnswer,
    slot: OwnedSemaphorePermit,
}

/// Serves one client that has begun to send its first frame, in `unread`.
pub(super) fn serve(
    socket: Socket,
    unread: Bytes,
    http: Arc<HttpService>,
    gateway: Arc<DirectGateway>,
    stop: Stop,
) -> Boxed<()> {
    Box::pin(async move {
        if let Err(error) = attend(socket, unread, http, gateway, stop).await {
            tracing::debug!(%error, "a connection in direct mode ended");
        }
    })
}

async fn attend(
    socket: Socket,
    unread: Bytes,
    http: Arc<HttpService>,
    gateway: Arc<DirectGateway>,
    stop: Stop,
) -> Result<(), Broken> {
    let client = Client::new(socket.scheme(), http.process.answers.outbox());
    let (read, mut write) = tokio::io::split(socket);
    let mut inbox = Inbox { read, buffer: BytesMut::from(&*unread) };
    greet(&mut inbox, &mut write, &gateway).await?;
    let (answers, ready) = channel(REQUESTS_MAX);
    let channel = Channel { http: Arc::clone(&http), gateway, client, answers };
    let mut writing = pin!(write_answers(write, ready, &http));
    tokio::select! {
        read = read_requests(inbox, channel, stop) => read?,
        written = &mut writing => return written,
    }
    // All requests are answered; the last answers may still be on their way.
    timeout(LINGER_MAX, writing).await.map_err(|_| Broken::TooSlow)?
}

/// The exchange that opens a connection.
async fn greet(
    inbox: &mut Inbox,
    write: &mut WriteHalf<Socket>,
    gateway: &DirectGateway,
) -> Result<(), Broken> {
    let head = timeout(HEAD_MAX, inbox.head()).await.map_err(|_| Broken::TooSlow)??;
    let (head, _) = head.ok_or(Broken::Context)?;
    let greeting = gateway.greet(&head).ok_or(Broken::Context)?;
    write.write_all(&greeting.answer).await?;
    write.flush().await?;
    if greeting.accepted { Ok(()) } else { Err(Broken::Context) }
}

/// What requests of one connection share.
#[derive(Clone, Debug)]
struct Channel {
    http: Arc<HttpService>,
    gateway: Arc<DirectGateway>,
    client: Client,
    answers: Sender<Outgoing>,
}

/// Starts requests until the client leaves or the server stops; in the latter case it waits for
/// those under way. Dropped, it drops reads with it; changes are completed.
async fn read_requests(mut inbox: Inbox, channel: Channel, mut stop: Stop) -> Result<(), Broken> {
    let slots = Arc::new(Semaphore::new(REQUESTS_MAX));
    let mut requests = JoinSet::new();
    loop {
        while requests.try_join_next().is_some() {}
        let arrived = async {
            let slot = Arc::clone(&slots).acquire_owned().await.expect("slots are never closed");
            inbox.head().await.map(|head| head.map(|head| (head, slot)))
        };
        let arrived = tokio::select! {
            biased;
            () = stop.raised() => break,
            arrived = arrived => arrived?,
        };
        let Some(((head, payload_bytes), slot)) = arrived else { return Ok(()) };
        match channel.gateway.let_in(head).ok_or(Broken::Nameless)? {
            Err(refusal) => {
                inbox.skip(payload_bytes.unwrap_or_default()).await?;
                channel.send(channel.http.counted(*refusal), slot).await;
            }
            Ok(request) => {
                let request = channel.receive(&mut inbox, request, payload_bytes).await?;
                let channel = channel.clone();
                requests.spawn(async move { channel.answer(request, slot).await });
            }
        }
    }
    drop(channel);
    while requests.join_next().await.is_some() {}
    Ok(())
}

impl Channel {
    /// The rest of an authorised request.
    async fn receive(
        &self,
        inbox: &mut Inbox,
        request: DirectLetIn,
        payload_bytes: Option<usize>,
    ) -> Result<DirectRequest, Broken> {
        let mut memory = BodyPermit::new(&self.client, &self.http.process.bodies);
        let payload = match payload_bytes {
            None => Some(Bytes::new()),
            Some(bytes) if bytes > BODY_BYTES_MAX => {
                inbox.skip(bytes).await?;
                None
            }
            Some(bytes) => {
                let received = async {
                    memory.hold(bytes).await;
                    inbox.payload(bytes).await
                };
                Some(timeout(PAYLOAD_MAX, received).await.map_err(|_| Broken::TooSlow)??)
            }
        };
        Ok(DirectRequest { request, payload, memory })
    }

    async fn answer(self, request: DirectRequest, slot: OwnedSemaphorePermit) {
        let gateway = Arc::clone(&self.gateway);
        let answer = self.http.answer_direct(gateway, request, &self.client).await;
        self.send(answer, slot).await;
    }

    async fn send(&self, answer: DirectAnswer, slot: OwnedSemaphorePermit) {
        // An error means that the connection has ended, and its answers with it.
        let _sent = self.answers.send(Outgoing { answer, slot }).await;
    }
}

/// What has arrived and was not looked at yet.
#[derive(Debug)]
struct Inbox {
    read: ReadHalf<Socket>,
    buffer: BytesMut,
}

impl Inbox {
    /// The next head, and the length of its payload; `None` when the client has left. Dropped
    /// half-way, it loses nothing.
    async fn head(&mut self) -> Result<Option<(Bytes, Option<usize>)>, Broken> {
        loop {
            if let Some(extent) = Extent::of_request(&self.buffer)? {
                let head = self.buffer.split_to(extent.head_bytes).freeze();
                self.buffer.advance(extent.bytes_before_payload() - extent.head_bytes);
                return Ok(Some((head, extent.payload_bytes)));
            }
            let is_idle = self.buffer.is_empty();
            let more = self.more();
            let came = match is_idle {
                true => more.await?,
                false => timeout(HEAD_MAX, more).await.map_err(|_| Broken::TooSlow)??,
            };
            if came == 0 {
                return Ok(None);
            }
        }
    }

    async fn more(&mut self) -> io::Result<usize> {
        self.buffer.reserve(READ_BYTES);
        self.read.read_buf(&mut self.buffer).await
    }

    /// The payload of the head before. Its length is within the limit, and its memory reserved.
    async fn payload(&mut self, bytes: usize) -> Result<Bytes, Broken> {
        if self.buffer.len() >= bytes {
            return Ok(self.buffer.split_to(bytes).freeze());
        }
        let mut payload = BytesMut::with_capacity(bytes);
        payload.extend_from_slice(&self.buffer);
        self.buffer.clear();
        let mut rest = (&mut self.read).take((bytes - payload.len()) as u64);
        while payload.len() < bytes {
            if rest.read_buf(&mut payload).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
        Ok(payload.freeze())
    }

    /// Reads past a payload without keeping anything of it.
    async fn skip(&mut self, bytes: usize) -> Result<(), Broken> {
        if bytes as u64 > STRANGER_DISCARD_BYTES_MAX {
            return Err(Broken::Payload { bytes });
        }
        let skipping = async {
            let mut left = bytes;
            loop {
                let here = left.min(self.buffer.len());
                self.buffer.advance(here);
                left -= here;
                if left == 0 {
                    return Ok(());
                }
                if self.more().await? == 0 {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
            }
        };
        timeout(PAYLOAD_MAX, skipping).await.map_err(|_| Broken::TooSlow)?
    }
}

/// Writes answers until there can be no more.
async fn write_answers(
    mut write: WriteHalf<Socket>,
    mut ready: Receiver<Outgoing>,
    http: &HttpService,
) -> Result<(), Broken> {
    let mut out = Vec::new();
    while let Some(first) = ready.recv().await {
        let crowded = http.process.answers.is_crowded();
        let limit = if crowded { ANSWER_CROWDED_MAX } else { ANSWER_MAX };
        let written = timeout(limit, write_ready(&mut write, &mut ready, first, &mut out)).await;
        written.map_err(|_| Broken::TooSlow)??;
    }
    write.shutdown().await?;
    Ok(())
}

/// Writes one answer, and those that are ready as well.
async fn write_ready(
    write: &mut WriteHalf<Socket>,
    ready: &mut Receiver<Outgoing>,
    first: Outgoing,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    // Slots are given back when all of it has been written.
    let mut slots = Vec::new();
    let mut next = Some(first);
    while let Some(Outgoing { answer, slot }) = next {
        slots.push(slot);
        out.extend_from_slice(&answer.head);
        if answer.payload.len() > WRITE_BYTES {
            write.write_all(out).await?;
            out.clear();
            write.write_all(&answer.payload).await?;
        } else {
            out.extend_from_slice(&answer.payload);
        }
        next = if out.len() < WRITE_BYTES { ready.try_recv().ok() } else { None };
    }
    write.write_all(out).await?;
    out.clear();
    write.flush().await
}
