//! Between a connection and the protocols: it routes a request to its protocol, reads its
//! body, enforces its memory limits, and counts the answer.

mod body;
pub(crate) mod direct;
mod unread;

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, HOST};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use operator::{OperatorGateway, OperatorRequest, Routed};
use runtime::on_async_worker;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use wire_cosmos::{BODY_BYTES_MAX, Gateway, HttpHead, LetIn};
use wire_rntbd::DirectGateway;

pub(crate) use self::body::{BodyMemory, BodyPermit, STRANGER_DISCARD_BYTES_MAX};
use self::body::{body_of, discard};
pub(crate) use self::unread::{Answers, Outbox};
use crate::http::host::Hosts;
use crate::http::listener::ConnectionLimit;
use crate::panics::catch_panic;
use crate::process::ServerProcess;
use crate::stop::Stop;

/// How long a refusal waits for the rest of a body that is discarded: time for a packet or
/// two, so that most clients can reuse their connection.
const REFUSED_REST_MAX: Duration = Duration::from_millis(250);

pub(crate) type Answer = Response<Bytes>;

/// What requests know of their connection.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// `http` or `https`.
    scheme: &'static str,
    /// What bodies may take without a reservation.
    allowance: Arc<Semaphore>,
    outbox: Outbox,
}

impl Client {
    pub(crate) fn new(scheme: &'static str, outbox: Outbox) -> Client {
        Client { scheme, allowance: body::allowance(), outbox }
    }
}

/// Everything that answers requests.
#[derive(Debug)]
pub(crate) struct HttpService {
    pub(crate) process: Arc<ServerProcess>,
    pub(crate) connections: ConnectionLimit,
    operator: Arc<OperatorGateway>,
    /// Set when the data has been opened.
    cosmos: OnceLock<Arc<Gateway>>,
    /// The same for direct mode, where that is on.
    direct: OnceLock<Arc<DirectGateway>>,
    hosts: Hosts,
    /// Queries are cancelled when the server stops.
    stop: Stop,
}

impl HttpService {
    pub(crate) fn new(
        process: Arc<ServerProcess>,
        operator: Arc<OperatorGateway>,
        connections: ConnectionLimit,
        hosts: Hosts,
        stop: Stop,
    ) -> HttpService {
        let (cosmos, direct) = (OnceLock::new(), OnceLock::new());
        HttpService { process, connections, operator, cosmos, direct, hosts, stop }
    }

    /// Serves the data to users as well.
    pub(crate) fn opened(&self, cosmos: Arc<Gateway>) {
        self.cosmos.set(cosmos).expect("the data is opened once");
    }

    /// Serves clients in direct mode, too. Before the data is served to others, so that none is
    /// given an address that leads nowhere.
    pub(crate) fn opened_direct(&self, direct: Arc<DirectGateway>) {
        self.direct.set(direct).expect("the data is opened once");
    }

    pub(crate) fn direct(&self) -> Option<&Arc<DirectGateway>> {
        self.direct.get()
    }

    /// Answers one request, whatever it is.
    pub(crate) async fn answer(&self, request: Request<Incoming>, client: &Client) -> Answer {
        let named = Named::of(&request);
        let answering = on_async_worker(async {
            match self.route(&request) {
                Routed::Answered(answer) => self.own(client, answer),
                Routed::Request(asked) => {
                    let answer = Box::pin(self.answer_operator(asked, request, client)).await;
                    self.own(client, answer)
                }
                Routed::NotOurs => self.answer_protocol(request, client).await,
            }
        });
        let answer = caught(named, answering).await;
        self.process.counters.answered(answer.status());
        answer
    }

    /// An answer to an operator. Its length is not known before it is ready.
    fn own(&self, client: &Client, answer: Answer) -> Answer {
        self.process.answers.hold(client, answer, None).unwrap_or_else(|_| too_many_answers())
    }

    fn route<B>(&self, request: &Request<B>) -> Routed {
        match self.hosts.check(request) {
            Ok(()) => self.operator.route(request),
            Err(unknown) => {
                let status = StatusCode::MISDIRECTED_REQUEST;
                Routed::Answered(problem(status, "MisdirectedRequest", &unknown.to_string()))
            }
        }
    }

    async fn answer_operator(
        &self,
        asked: OperatorRequest,
        request: Request<Incoming>,
        client: &Client,
    ) -> Answer {
        let (head, body) = request.into_parts();
        let mut permit = BodyPermit::new(client, &self.process.bodies);
        match body_of(body, head.headers.contains_key(EXPECT), &mut permit).await {
            Ok(Some(body)) => {
                let (operator, changes) = (Arc::clone(&self.operator), asked.is_change());
                let answering = async move { operator.answer(asked, body).await };
                if changes { to_the_end(answering, permit).await } else { answering.await }
            }
            Ok(None) => problem(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", "That is too large."),
            Err(answer) => answer,
        }
    }

    async fn answer_protocol(&self, request: Request<Incoming>, client: &Client) -> Answer {
        let Some(gateway) = self.cosmos.get() else {
            return unavailable("The server is starting.");
        };
        let (mut head, body) = request.into_parts();
        name_host(&mut head);
        let expects = head.headers.contains_key(EXPECT);
        let request = match gateway.let_in(HttpHead {
            method: head.method,
            path: head.uri.path().to_owned(),
            query: head.uri.query().map(str::to_owned),
            headers: head.headers,
            scheme: client.scheme,
        }) {
            Ok(request) => request,
            Err(refusal) => return refused(*refusal, body, expects).await,
        };
        if !request.is_query() {
            return self.work(gateway, request, (body, expects), client).await;
        }
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            () = stop.raised() => closing(unavailable("The server is stopping.")),
            answer = self.work(gateway, request, (body, expects), client) => answer,
        }
    }

    /// Answers an authorised request, once its body is there.
    async fn work(
        &self,
        gateway: &Arc<Gateway>,
        request: LetIn,
        (body, expects): (Incoming, bool),
        client: &Client,
    ) -> Answer {
        let declared = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
        let body_bytes = declared.unwrap_or(BODY_BYTES_MAX).min(BODY_BYTES_MAX);
        let changes = request.is_change();
        let answer_permit = client.outbox.reserve(request.answer_bytes_max(body_bytes)).await;
        let mut permit = BodyPermit::new(client, &self.process.bodies);
        let body = match body_of(body, expects, &mut permit).await {
            Ok(body) => body,
            Err(answer) => return answer,
        };
        let answering = answering(Arc::clone(gateway), request, body);
        // A read is dropped with its client, and so is a query that it waits for.
        let response = if changes { to_the_end(answering, permit).await } else { answering.await };
        let succeeded = response.status().is_success();
        match self.process.answers.hold(client, response, Some(answer_permit)) {
            Ok(response) => response,
            // It happened, but there is no memory for the answer.
            Err(_) if changes && succeeded => {
                let message = "The outcome of the request cannot be returned for want of memory. \
                    Please read before trying again.";
                problem(StatusCode::REQUEST_TIMEOUT, "RequestTimeout", message)
            }
            Err(_) => too_many_answers(),
        }
    }
}

/// The work for a request, boxed: it is some kilobytes large, and would be copied with
/// every future around it that moves.
fn answering(
    gateway: Arc<Gateway>,
    request: LetIn,
    body: Option<Bytes>,
) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
    Box::pin(async move { gateway.answer(request, body).await })
}

/// HTTP/2 has the host in the URL's authority; protocols look for a header.
fn name_host(head: &mut Parts) {
    if let Some(authority) = head.uri.authority()
        && !head.headers.contains_key(HOST)
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        head.headers.insert(HOST, host);
    }
}

/// A change is completed even if its client leaves: dropped half-way, the disk and the
/// catalogue in memory would no longer agree. It keeps its permit until then, so that
/// clients which ask and leave cannot pile up unlimited work.
async fn to_the_end(
    answering: impl Future<Output = Answer> + Send + 'static,
    permit: BodyPermit,
) -> Answer {
    let answering = tokio::spawn(on_async_worker(async move {
        let answer = answering.await;
        drop(permit);
        answer
    }));
    match answering.await {
        Ok(answer) => answer,
        Err(error) => match error.try_into_panic() {
            // The code that answers requests reports it.
            Ok(panic) => resume_unwind(panic),
            Err(_) => unavailable("The server is stopping."),
        },
    }
}

/// What the log says of a request that panicked.
struct Named {
    method: Method,
    path: String,
    activity_id: Option<HeaderValue>,
}

impl Named {
    fn of<B>(request: &Request<B>) -> Named {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let activity_id = request.headers().get("x-ms-activity-id").cloned();
        Named { method, path, activity_id }
    }
}

/// Answers even if the code panics: the fault is ours, and only this request suffers.
async fn caught(named: Named, answering: impl Future<Output = Answer>) -> Answer {
    if let Some(answer) = catch_panic(answering).await {
        return answer;
    }
    let Named { method, path, activity_id } = named;
    tracing::error!(%method, path, ?activity_id, "a request panicked");
    let message = "An internal error occurred.";
    problem(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
}

/// A refusal, with the rest of the body discarded: not a byte of it is kept. If the body is
/// still arriving, the answer goes first and ends the connection, which lingers for what
/// the client still sends.
async fn refused(refusal: Answer, mut body: Incoming, expects: bool) -> Answer {
    let is_whole = !expects && timeout(REFUSED_REST_MAX, discard(&mut body)).await.is_ok();
    if !is_whole && !body.is_end_stream() {
        return closing(refusal);
    }
    refusal
}

/// An answer that ends its connection: there is more of the request than was read.
fn closing(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// An answer of the server's own, in the shape of the protocol's errors: SDKs look
/// into it.
pub(crate) fn problem(status: StatusCode, code: &str, message: &str) -> Answer {
    let answer = operator::problem(status, code, message);
    // The rest of the body would be taken for the next request. HTTP/2 has no such header
    // and no such problem; there hyper leaves it out.
    if status == StatusCode::REQUEST_TIMEOUT { closing(answer) } else { answer }
}

/// Too much is waiting for slow readers.
fn too_many_answers() -> Answer {
    unavailable("Too many large answers at once. Please retry later.")
}

fn unavailable(message: &str) -> Answer {
    problem(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
}

#[cfg(test)]
mod tests;
