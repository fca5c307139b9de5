//! What stands between a connection and the protocols: bodies are read here, answers are
//! counted here, and the paths that belong to the server itself are answered here.

mod body;
mod unread;

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, EXPECT, HOST};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use runtime::{MemoryBudget, MemoryUsage, on_async_worker};
use service::{Principal, Service};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use wire_cosmos::{BODY_BYTES_MAX, Gateway, HttpHead, LetIn};

use self::body::{BodyMemory, BodyPermit, body_of, discard};
pub(crate) use self::unread::{Answers, Outbox};
use crate::admin::{self, Admin, Route};
use crate::background;
use crate::backups::Backups;
use crate::http::counters::Counters;
use crate::http::host::Hosts;
use crate::http::listener::ConnectionLimit;
use crate::layout::Order;
use crate::memory::{MemoryPlan, MemoryReport};
use crate::metrics::{self, Durations};
use crate::panics::catch_panic;
use crate::stop::Stop;

/// How long a refusal waits for the rest of a body that is thrown away: time for a packet
/// or two, so that most clients can go on using their connection.
const REFUSED_REST_MAX: Duration = Duration::from_millis(250);

pub(crate) type Answer = Response<Bytes>;

/// What a connection is to the requests that come over it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// `http` or `https`.
    scheme: &'static str,
    /// What bodies may take without asking.
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
    /// Set when the data has been opened.
    pub(crate) open: OnceLock<Open>,
    pub(crate) admin: Admin,
    pub(crate) counters: Counters,
    pub(crate) background: background::tasks::Counters,
    pub(crate) durations: Arc<Durations>,
    pub(crate) connections: ConnectionLimit,
    pub(crate) answers: Answers,
    hosts: Hosts,
    bodies: BodyMemory,
    plan: MemoryPlan,
    /// What queries take; theirs to ask for.
    queries: Arc<MemoryBudget>,
    /// Nobody waits for a query when the server stops.
    stop: Stop,
}

/// What is there once the data is.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) service: Arc<Service>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) backups: Arc<Backups>,
}

impl HttpService {
    pub(crate) fn new(
        admin: Admin,
        connections: ConnectionLimit,
        hosts: Hosts,
        plan: MemoryPlan,
        (queries, stop): (Arc<MemoryBudget>, Stop),
    ) -> HttpService {
        HttpService {
            open: OnceLock::new(),
            admin,
            counters: Counters::default(),
            background: background::tasks::Counters::default(),
            durations: Arc::default(),
            connections,
            answers: Answers::new(&plan),
            hosts,
            bodies: BodyMemory::new(&plan),
            plan,
            queries,
            stop,
        }
    }

    /// Answers one request, whatever it is.
    pub(crate) async fn answer(&self, request: Request<Incoming>, client: &Client) -> Answer {
        let named = Named::of(&request);
        let answering = on_async_worker(async {
            match self.route(&request) {
                Route::Answered(answer) => self.own(client, answer),
                Route::Metrics => self.own(client, self.metrics().await),
                Route::Order(order) => {
                    let answer = self.answer_order(order, request, client).await;
                    self.own(client, answer)
                }
                Route::Protocol => self.answer_protocol(request, client).await,
            }
        });
        let answer = caught(named, answering).await;
        self.counters.answered(answer.status());
        answer
    }

    async fn metrics(&self) -> Answer {
        match self.open.get() {
            Some(open) => {
                let usage = open.service.operator(Principal::Account).usage().await;
                let counters = self.counters.readings();
                let tasks = self.background.figures();
                let readings = metrics::Readings::of(usage, self.memory(), counters, tasks);
                metrics::answer(&self.durations, readings)
            }
            None => admin::ready(self),
        }
    }

    /// An answer to an operator. There is no saying how long it becomes before it is there.
    fn own(&self, client: &Client, answer: Answer) -> Answer {
        self.answers.hold(client, answer, None).unwrap_or_else(|_| too_many_answers())
    }

    /// What is held of the memory that clients can make us use, and by whom.
    pub(crate) fn memory(&self) -> MemoryReport {
        let (bodies, bodies_waited) = self.bodies.usage();
        let limit = self.plan.bodies + self.plan.bodies_overflow * BODY_BYTES_MAX;
        MemoryReport {
            plan: self.plan,
            parts: [
                ("bodies", MemoryUsage { limit, ..bodies }),
                ("answers", self.answers.usage()),
                ("queries", self.queries.usage()),
            ],
            bodies_waited,
        }
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
        let Some(Open { service, backups, .. }) = self.open.get() else {
            return unavailable("The server is starting.");
        };
        let (head, body) = request.into_parts();
        let mut permit = BodyPermit::new(client, &self.bodies);
        match body_of(body, head.headers.contains_key(EXPECT), &mut permit).await {
            Ok(Some(body)) => {
                let (service, backups) = (Arc::clone(service), Arc::clone(backups));
                let carried_out = async move { order.carry_out(&service, &backups, &body).await };
                to_the_end(carried_out, permit).await
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

    /// Answers a request that was let in, once its body is there.
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
        let mut permit = BodyPermit::new(client, &self.bodies);
        let body = match body_of(body, expects, &mut permit).await {
            Ok(body) => body,
            Err(answer) => return answer,
        };
        let answering = answering(Arc::clone(gateway), request, body);
        // What only reads goes with its client, and so does a query that it waits for.
        let response = if changes { to_the_end(answering, permit).await } else { answering.await };
        let succeeded = response.status().is_success();
        match self.answers.hold(client, response, Some(answer_permit)) {
            Ok(response) => response,
            // It happened, and there is no room to say what.
            Err(_) if changes && succeeded => {
                let message = "The outcome of the request cannot be told for want of memory. \
                    Please read before trying again.";
                problem(StatusCode::REQUEST_TIMEOUT, "RequestTimeout", message)
            }
            Err(_) => too_many_answers(),
        }
    }
}

/// The work behind a request in a box of its own: it is some kilobytes large, and
/// would be copied with every future around it that moves.
fn answering(
    gateway: Arc<Gateway>,
    request: LetIn,
    body: Option<Bytes>,
) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
    Box::pin(async move { gateway.answer(request, body).await })
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
/// disk and the catalogue in memory would no longer agree. It keeps its permit until
/// then, so that clients which ask and leave cannot pile up work without limit.
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
            // Whoever answers requests reports it.
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

/// An answer also where the code behind it panics: the fault is ours, and only this
/// request suffers from it.
async fn caught(named: Named, answering: impl Future<Output = Answer>) -> Answer {
    if let Some(answer) = catch_panic(answering).await {
        return answer;
    }
    let Named { method, path, activity_id } = named;
    tracing::error!(%method, path, ?activity_id, "a request panicked");
    let message = "An internal error occurred.";
    problem(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", message)
}

/// A refusal, with the rest of the body out of the way: not a byte of it is kept. Where that
/// is still under way, the answer goes first and ends the connection, which lingers for
/// what the client still sends.
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

/// Too much is waiting for clients that do not read.
fn too_many_answers() -> Answer {
    unavailable("Too many large answers at once. Please retry later.")
}

fn unavailable(message: &str) -> Answer {
    problem(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use tokio::sync::Notify;

    use super::*;
    use crate::log::Captured;
    use crate::memory::MemorySize;

    fn client() -> Client {
        let answers = Answers::new(&MemoryPlan::of(MemorySize::default()));
        Client::new("http", answers.outbox())
    }

    fn named(method: Method) -> Named {
        Named { method, path: "/".to_owned(), activity_id: None }
    }

    fn ready<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_request_that_panics_is_answered_and_logged() {
        for method in [Method::GET, Method::POST] {
            let panicking = caught(named(method.clone()), async { panic!("as the test wants it") });
            let (log, _listening) = Captured::begin();
            let Poll::Ready(answer) = ready(panicking) else { panic!("nothing to wait for") };
            assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
            let log = log.text();
            assert!(log.contains("ERROR") && log.contains("a request panicked"), "{log}");
            assert!(log.contains(method.as_str()), "{log}");
        }
    }

    #[tokio::test]
    async fn a_change_that_panics_is_answered_and_gives_back_its_shares() {
        let memory = BodyMemory::with(64, 1);
        let mut permit = BodyPermit::new(&client(), &memory);
        permit.hold(32 << 10).await;
        assert!(memory.usage().0.held > 0);
        let change = to_the_end(async { panic!("as the test wants it") }, permit);
        let (log, _listening) = Captured::begin();
        let answer = caught(named(Method::POST), change).await;
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(log.text().contains("a request panicked"));
        assert_eq!(memory.usage().0.held, 0);
    }

    #[tokio::test]
    async fn a_change_goes_on_without_its_client() {
        let (gate, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (opened, said) = (Arc::clone(&gate), Arc::clone(&done));
        let change = async move {
            opened.notified().await;
            said.notify_one();
            unavailable("nobody reads this")
        };
        let permit = BodyPermit::new(&client(), &BodyMemory::with(4, 1));
        {
            let mut client = pin!(to_the_end(change, permit));
            let polled = poll_fn(|context| Poll::Ready(client.as_mut().poll(context)));
            assert!(polled.await.is_pending());
        }
        gate.notify_one();
        done.notified().await;
    }
}
