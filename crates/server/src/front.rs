//! What stands between a connection and the protocols: bodies are read here, and
//! the paths that belong to the server itself are answered here.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_TYPE, EXPECT, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use service::Service;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use wire_cosmos::{BODY_BYTES_MAX, Gateway, HttpRequest};

use crate::admin::{self, Admin, Route};
use crate::counters::Counters;
use crate::host::Hosts;
use crate::layout::Order;
use crate::listener::Room;

/// A body that is allowed at all gets through any usable line in this time.
const BODY_MAX: Duration = Duration::from_secs(30);

/// Memory for bodies is counted in shares of this size.
const BODY_SHARE_BYTES: usize = 1 << 10;

/// What the bodies of one connection may take without asking anybody, so that small
/// requests are served however many large ones are held up. With every connection
/// in use this adds up to 256 MiB.
const BODY_FREE_SHARES: usize = 16;

/// The budget for what is beyond that: 128 MiB for all bodies that are being
/// received or worked on. Who finds none left waits.
const BODY_SHARES: usize = 128 << 10;

/// Bodies that may be received beyond the budget, one after the other in each lane:
/// 17 MiB. Otherwise bodies that have a part of the budget each, and wait for the
/// rest of it, would wait for each other until all of them have run out of time.
const BODY_LANES: usize = 8;

/// Room that is prepared for a body which is larger than its first piece.
const BODY_PREPARED_BYTES_MAX: usize = 16 << 10;

/// A body that is too large is read to its end and thrown away up to this size,
/// because many clients look at the answer only after they have sent everything.
const DISCARD_BYTES_MAX: u64 = 32 << 20;

pub(crate) type Answer = Response<Bytes>;

/// What a connection is to the requests that come over it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// `http` or `https`.
    scheme: &'static str,
    /// Free shares for bodies; see [`BODY_FREE_SHARES`].
    allowance: Arc<Semaphore>,
}

impl Client {
    pub(crate) fn new(scheme: &'static str) -> Client {
        Client { scheme, allowance: Arc::new(Semaphore::new(BODY_FREE_SHARES)) }
    }
}

/// Everything that answers requests.
#[derive(Debug)]
pub(crate) struct Front {
    /// Set when the data has been opened.
    pub(crate) open: OnceLock<Open>,
    pub(crate) admin: Admin,
    pub(crate) counters: Counters,
    /// Told when something was dropped that leaves data behind.
    pub(crate) dropped: Notify,
    pub(crate) room: Room,
    hosts: Hosts,
    memory: Memory,
}

/// What is there once the data is.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) service: Arc<Service>,
    pub(crate) gateway: Arc<Gateway>,
}

impl Front {
    pub(crate) fn new(admin: Admin, room: Room, hosts: Hosts) -> Front {
        Front {
            open: OnceLock::new(),
            admin,
            counters: Counters::default(),
            dropped: Notify::new(),
            room,
            hosts,
            memory: Memory::new(BODY_SHARES, BODY_LANES),
        }
    }

    /// Answers one request, whatever it is.
    pub(crate) async fn answer(&self, request: Request<Incoming>, client: &Client) -> Answer {
        let answer = match self.route(&request) {
            Route::Answered(answer) => answer,
            Route::Order(order) => self.answer_order(order, request, client).await,
            Route::Protocol => self.answer_protocol(request, client).await,
        };
        self.counters.answered(answer.status());
        answer
    }

    fn route<B>(&self, request: &Request<B>) -> Route {
        match self.hosts.check(request) {
            Ok(()) => admin::route(self, request),
            Err(unknown) => {
                let status = StatusCode::MISDIRECTED_REQUEST;
                Route::Answered(problem(status, "MisdirectedRequest", &unknown.to_string()))
            }
        }
    }

    async fn answer_order(
        &self,
        order: Order,
        request: Request<Incoming>,
        client: &Client,
    ) -> Answer {
        let Some(Open { service, .. }) = self.open.get() else {
            return unavailable("The server is starting.");
        };
        let (head, body) = request.into_parts();
        let mut shares = Shares::new(client, &self.memory);
        match body_of(body, &head.headers, &mut shares).await {
            Ok(Some(body)) => {
                let service = Arc::clone(service);
                to_the_end(async move { order.carry_out(&service, &body).await }, shares).await
            }
            Ok(None) => problem(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", "That is too large."),
            Err(answer) => answer,
        }
    }

    async fn answer_protocol(&self, request: Request<Incoming>, client: &Client) -> Answer {
        let Some(Open { gateway, .. }) = self.open.get() else {
            return unavailable("The server is starting.");
        };
        let (mut head, body) = request.into_parts();
        let mut shares = Shares::new(client, &self.memory);
        let body = match body_of(body, &head.headers, &mut shares).await {
            Ok(body) => body,
            Err(answer) => return answer,
        };
        let drops = head.method == Method::DELETE && !is_item(head.uri.path());
        name_host(&mut head);
        let request = HttpRequest {
            method: head.method,
            path: head.uri.path().to_owned(),
            headers: head.headers,
            body,
            scheme: client.scheme,
        };
        let reads = request.method == Method::GET;
        let answering = answering(Arc::clone(gateway), request);
        let response = if reads { answering.await } else { to_the_end(answering, shares).await };
        if drops && response.status().is_success() {
            self.dropped.notify_one();
        }
        response
    }
}

/// The work behind a request in a box of its own: it is some kilobytes large, and
/// would be copied with every future around it that moves.
fn answering(
    gateway: Arc<Gateway>,
    request: HttpRequest,
) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
    Box::pin(async move { gateway.answer(request).await })
}

/// HTTP/2 has the host in the place of the URL's; protocols look for a header.
fn name_host(head: &mut Parts) {
    if let Some(authority) = head.uri.authority()
        && !head.headers.contains_key(HOST)
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        head.headers.insert(HOST, host);
    }
}

/// A change is made to the end even if its client leaves: dropped half-way, the
/// disk and the catalogue in memory would no longer agree. It keeps its shares until
/// then, so that clients which ask and leave cannot pile up work without limit.
async fn to_the_end(
    answering: impl Future<Output = Answer> + Send + 'static,
    shares: Shares,
) -> Answer {
    let answering = tokio::spawn(async move {
        let answer = answering.await;
        drop(shares);
        answer
    });
    answering.await.unwrap_or_else(|_| {
        tracing::error!("a request panicked");
        let message = "An internal error occurred.";
        problem(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
    })
}

/// The whole body; none if it is larger than any may be.
async fn body_of(
    body: Incoming,
    headers: &HeaderMap,
    shares: &mut Shares,
) -> Result<Option<Bytes>, Answer> {
    let received = receive(body, headers, shares);
    match timeout(BODY_MAX, received).await {
        Ok(Received::Whole(body)) => Ok(Some(body)),
        Ok(Received::TooLarge) => Ok(None),
        Ok(Received::Broken) => {
            let message = "The request body is malformed.";
            Err(problem(StatusCode::BAD_REQUEST, "BadRequest", message))
        }
        Err(_) if shares.waiting => Err(unavailable("Too many large requests at once.")),
        Err(_) => {
            let message = "The request body did not arrive in time.";
            Err(problem(StatusCode::REQUEST_TIMEOUT, "RequestTimeout", message))
        }
    }
}

/// Whether a path names an item: deleting one leaves nothing behind.
fn is_item(path: &str) -> bool {
    path.split('/').filter(|segment| !segment.is_empty()).nth(4) == Some("docs")
}

#[derive(Debug)]
enum Received {
    Whole(Bytes),
    TooLarge,
    /// The client left, or its chunks make no sense.
    Broken,
}

async fn receive(mut body: Incoming, headers: &HeaderMap, shares: &mut Shares) -> Received {
    let declared = body.size_hint().lower();
    if declared > BODY_BYTES_MAX as u64 {
        // Whoever asks first gets the answer first.
        if declared <= DISCARD_BYTES_MAX && !headers.contains_key(EXPECT) {
            discard(&mut body).await;
        }
        return Received::TooLarge;
    }
    let mut whole = Whole::default();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Received::Broken };
        let Ok(data) = frame.into_data() else { continue };
        let len = whole.len() + data.len();
        if len > BODY_BYTES_MAX {
            drop(whole);
            discard(&mut body).await;
            return Received::TooLarge;
        }
        shares.hold(len).await;
        whole.push(data, declared);
    }
    Received::Whole(whole.into_bytes())
}

/// Reads on without keeping anything.
async fn discard(body: &mut Incoming) {
    let mut left = DISCARD_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let len = frame.data_ref().map_or(0, Bytes::len) as u64;
        let Some(rest) = left.checked_sub(len) else { return };
        left = rest;
    }
}

/// A body in pieces. One piece, the usual case, is not copied.
#[derive(Debug, Default)]
struct Whole {
    first: Bytes,
    all: BytesMut,
}

impl Whole {
    fn len(&self) -> usize {
        self.first.len() + self.all.len()
    }

    fn push(&mut self, data: Bytes, declared: u64) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        if !self.first.is_empty() {
            // What is declared is below the limit and mostly true; what has not
            // arrived is not yet paid for, so only a share of it is prepared.
            let expected =
                usize::try_from(declared).unwrap_or_default().min(BODY_PREPARED_BYTES_MAX);
            self.all.reserve(expected.max(self.first.len() + data.len()));
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.all.extend_from_slice(&data);
    }

    fn into_bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.freeze() }
    }
}

/// What all bodies together may take.
#[derive(Clone, Debug)]
struct Memory {
    /// See [`BODY_SHARES`].
    budget: Arc<Semaphore>,
    /// See [`BODY_LANES`].
    lanes: Arc<Semaphore>,
}

impl Memory {
    fn new(shares: usize, lanes: usize) -> Memory {
        Memory { budget: Arc::new(Semaphore::new(shares)), lanes: Arc::new(Semaphore::new(lanes)) }
    }
}

/// What one body takes, first of its connection's allowance, then of the common
/// budget, and where that is used up a lane; given back when dropped.
#[derive(Debug)]
struct Shares {
    allowance: Arc<Semaphore>,
    memory: Memory,
    held: Vec<OwnedSemaphorePermit>,
    /// A body that has one needs no more shares.
    lane: Option<OwnedSemaphorePermit>,
    /// Whether it was the memory that the body waited for.
    waiting: bool,
}

impl Shares {
    fn new(client: &Client, memory: &Memory) -> Shares {
        let (allowance, memory) = (Arc::clone(&client.allowance), memory.clone());
        Shares { allowance, memory, held: Vec::new(), lane: None, waiting: false }
    }

    async fn hold(&mut self, len: usize) {
        if self.lane.is_some() {
            return;
        }
        let held: usize = self.held.iter().map(OwnedSemaphorePermit::num_permits).sum();
        let mut due = len.div_ceil(BODY_SHARE_BYTES).saturating_sub(held);
        let free = due.min(self.allowance.available_permits());
        // Another body of the connection may be quicker; then the budget has to do.
        if let Ok(permit) = Arc::clone(&self.allowance).try_acquire_many_owned(count(free)) {
            due -= free;
            self.keep(permit);
        }
        if due == 0 {
            return;
        }
        self.waiting = true;
        let Memory { budget, lanes } = self.memory.clone();
        tokio::select! {
            biased;
            permit = budget.acquire_many_owned(count(due)) => {
                self.keep(permit.expect("the budget is never closed"));
            }
            permit = lanes.acquire_owned() => {
                self.lane = Some(permit.expect("the lanes are never closed"));
            }
        }
        self.waiting = false;
    }

    /// Large bodies come in many pieces: what belongs together is kept together.
    fn keep(&mut self, permit: OwnedSemaphorePermit) {
        let same =
            |held: &&mut OwnedSemaphorePermit| Arc::ptr_eq(held.semaphore(), permit.semaphore());
        match self.held.iter_mut().find(same) {
            Some(held) => held.merge(permit),
            None => self.held.push(permit),
        }
    }
}

fn count(shares: usize) -> u32 {
    u32::try_from(shares).unwrap_or(u32::MAX)
}

/// An answer of the server's own, in the shape of the protocol's errors: SDKs look
/// into it.
pub(crate) fn problem(status: StatusCode, code: &str, message: &str) -> Answer {
    let mut answer = json(status, &serde_json::json!({ "code": code, "message": message }));
    if status == StatusCode::REQUEST_TIMEOUT {
        // What is left of the body would be taken for the next request. HTTP/2 has no
        // such header and no such problem; there hyper leaves it out.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

pub(crate) fn json(status: StatusCode, body: &serde_json::Value) -> Answer {
    let mut answer = Response::new(Bytes::from(body.to_string()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn unavailable(message: &str) -> Answer {
    problem(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// How a body goes on that has come to so many shares.
    fn hold(shares: &mut Shares, count: usize) -> Poll<()> {
        let held = pin!(shares.hold(count * BODY_SHARE_BYTES));
        held.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn bodies_that_have_used_up_the_budget_do_not_wait_for_each_other() {
        let memory = Memory::new(4, 1);
        let body = || Shares::new(&Client::new("http"), &memory);
        let (mut one, mut other) = (body(), body());
        let half = BODY_FREE_SHARES + 2;
        assert_eq!(
            (hold(&mut one, half), hold(&mut other, half)),
            (Poll::Ready(()), Poll::Ready(()))
        );
        let whole = BODY_FREE_SHARES + 100;
        assert_eq!(hold(&mut one, half + 2), Poll::Ready(()), "one goes on beyond the budget");
        assert_eq!(hold(&mut one, whole), Poll::Ready(()), "to its end");
        assert_eq!(hold(&mut other, half + 2), Poll::Pending, "no more than one at a time");
        drop(one);
        assert_eq!(hold(&mut other, half + 2), Poll::Ready(()));
        assert_eq!(hold(&mut other, whole), Poll::Ready(()), "now this one does");
        drop(other);
        assert_eq!((memory.budget.available_permits(), memory.lanes.available_permits()), (4, 1));
    }
}
