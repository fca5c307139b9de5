//! One HTTP request through this protocol.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use model::json::{self, Value};
use model::limits::Limits;
use model::position::Timestamp;
use runtime::{LogContext, Runtime, in_log_context, on_async_worker, with_log_context};
use service::identity::{AccountKeys, Issuer, Mode, PermissionGrant};
use service::{
    Caller, ContainerVerb, Failure, InContainer, Link, Principal, Ranges, ReadRanges, Request,
    Response, Service, ServiceError, Verb,
};

use crate::headers::{ACTIVITY_ID, Headers, IS_BATCH};
use crate::observe::{self, Observer, RequestContext, Unobserved, VerbLabel};
use crate::reply::Answer;
use crate::route::{Path, PathError, Route};
use crate::{account, addresses, conflicts, items, query, ranges, resources};
use protocol::auth::{self, Claim, Times, Trusted};
use protocol::binary_json;
use protocol::error::WireError;

/// Largest body that is read. Items may have 2 MB and a batch as much in all; anything
/// larger is refused without reading on.
pub const BODY_BYTES_MAX: usize = (2 << 20) + (64 << 10);

/// The longest answer to expect: a page of rows and its envelope.
pub const ANSWER_BYTES_MAX: usize = (4 << 20) + (64 << 10);

/// The longest item in an answer, with its system properties.
const ITEM_ANSWER_BYTES_MAX: usize = (2 << 20) + (4 << 10);

/// What an answer has besides what the request contained: system properties, an error.
const ANSWER_EXTRA_BYTES: usize = 4 << 10;

/// How the gateway behaves. Plain data.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Shared with the server, which replaces them.
    pub keys: Arc<AccountKeys>,
    /// Identity providers whose tokens are accepted.
    pub issuers: Arc<[Issuer]>,
    /// Whether the unsigned tokens of the official SDKs' tests are, which have a key of the account in
    /// them: for servers that only their own machine reaches.
    pub tokens_with_keys: bool,
    /// The one region of the account, by a name that SDKs know.
    pub region: String,
    /// Whether clients in direct mode are given addresses.
    pub direct: bool,
    /// How far the clock of a signed request may be off.
    pub skew_secs_max: u64,
    /// Requests that take at least this long are logged, queries with their plan.
    pub slow_after: Option<Duration>,
}

/// The head of a request. Its body need not have arrived.
#[derive(Clone, Debug)]
pub struct HttpHead {
    pub method: Method,
    /// The path as it is in the request line, with the query: it may be part of an id.
    pub path: String,
    /// What follows the question mark, if there is one.
    pub query: Option<String>,
    pub headers: HeaderMap,
    /// `http` or `https`, as the client sees it.
    pub scheme: &'static str,
}

/// What goes back.
pub type HttpResponse = http::Response<Bytes>;

/// The protocol on top of a service.
#[derive(Debug)]
pub struct Gateway {
    service: Arc<Service>,
    runtime: Runtime,
    config: GatewayConfig,
    observer: Arc<dyn Observer>,
}

/// An authorised request: the caller is known, and the head is valid. Only
/// [`Gateway::let_in`] makes one, and [`Gateway::answer`] requires it, so the body of an
/// unauthorised request is never read or kept.
#[derive(Debug)]
pub struct LetIn {
    head: HttpHead,
    route: Route,
    principal: Principal,
    caller: Caller,
    activity_id: String,
}

impl LetIn {
    /// Whether it changes something. If not, it need not be completed once its client has
    /// gone.
    #[must_use]
    pub fn is_change(&self) -> bool {
        changes(&self.head.method, &self.route, Headers::new(&self.head.headers))
    }

    /// Whether it is a query, or asks how to run one.
    #[must_use]
    pub fn is_query(&self) -> bool {
        self.head.method == Method::POST && !self.is_change()
    }

    /// How long the answer to a body of that length can become. An estimate for reserving
    /// memory: a patched item may be longer than the patch suggests.
    #[must_use]
    pub fn answer_bytes_max(&self, body_bytes: usize) -> usize {
        let headers = Headers::new(&self.head.headers);
        let echoed = body_bytes.saturating_add(ANSWER_EXTRA_BYTES);
        match (&self.route, &self.head.method) {
            (Route::Item { .. }, &Method::GET | &Method::PATCH) => ITEM_ANSWER_BYTES_MAX,
            // A stored procedure returns as much as an item has.
            (Route::Resource { .. }, &Method::POST) => ITEM_ANSWER_BYTES_MAX,
            (_, &Method::GET | &Method::PATCH) => ANSWER_BYTES_MAX,
            (_, &Method::POST) if query::is_query(headers) || headers.flag(IS_BATCH) => {
                ANSWER_BYTES_MAX
            }
            _ => echoed.min(ANSWER_BYTES_MAX),
        }
    }
}

/// Whether a request changes something. If in doubt, it does.
fn changes(method: &Method, route: &Route, headers: Headers<'_>) -> bool {
    match (method, route) {
        (&Method::GET | &Method::HEAD, _) => false,
        (&Method::POST, Route::Items { .. }) => !items::only_asks(headers),
        (&Method::POST, Route::Feed { .. }) => !query::is_query(headers),
        _ => true,
    }
}

/// The context of an authorised request.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) principal: Principal,
    pub(crate) caller: Caller,
    pub(crate) method: &'a Method,
    pub(crate) headers: Headers<'a>,
    pub(crate) body: Option<&'a Bytes>,
    pub(crate) scheme: &'static str,
}

impl Gateway {
    #[must_use]
    pub fn new(service: Arc<Service>, runtime: Runtime, config: GatewayConfig) -> Gateway {
        Gateway { service, runtime, config, observer: Arc::new(Unobserved) }
    }

    /// Reports every answer to `observer`.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn Observer>) -> Gateway {
        Gateway { observer, ..self }
    }

    /// Decides by its head alone whether a request is accepted.
    ///
    /// # Errors
    /// The answer to one that is not.
    pub fn let_in(&self, head: HttpHead) -> Result<LetIn, Box<HttpResponse>> {
        let started = self.runtime.clock.monotonic();
        let activity_id = self.activity_id(&head.headers);
        match self.check(&head) {
            Ok((principal, caller, route)) => {
                Ok(LetIn { head, route, principal, caller, activity_id })
            }
            Err(error) => {
                let answer = Answer::error(&error, &activity_id);
                let context = RequestContext { head, activity_id, verb: VerbLabel::Other };
                Err(Box::new(self.finish(answer, &Arc::new(context), started)))
            }
        }
    }

    /// Answers a request, whatever it is. The body is `None` when it was larger than
    /// [`BODY_BYTES_MAX`].
    pub async fn answer(&self, request: LetIn, body: Option<Bytes>) -> HttpResponse {
        let started = self.runtime.clock.monotonic();
        let LetIn { head, route, principal, caller, activity_id } = request;
        let verb = VerbLabel::of(&head.method, &route, Headers::new(&head.headers));
        let context = Arc::new(RequestContext { head, activity_id, verb });
        let call = Call {
            gateway: self,
            principal,
            caller,
            method: &context.head.method,
            headers: Headers::new(&context.head.headers),
            body: body.as_ref(),
            scheme: context.head.scheme,
        };
        // Boxed, so that the future of a connection stays small however large requests
        // become.
        let answering = Box::pin(on_async_worker(call.answer(route)));
        let answer = in_log_context(Arc::clone(&context) as LogContext, answering).await;
        let answer = answer
            .map_err(|error| error.of_request(context.head.method.as_str(), &context.head.path));
        let answer = answer.unwrap_or_else(|error| Answer::error(&error, &context.activity_id));
        self.finish(answer, &context, started)
    }

    fn finish(
        &self,
        answer: Answer,
        context: &Arc<RequestContext>,
        started: Duration,
    ) -> HttpResponse {
        let elapsed = self.runtime.clock.monotonic().saturating_sub(started);
        self.observer.answered(context.verb, answer.status(), elapsed);
        if observe::is_logged(elapsed, self.config.slow_after) {
            let lines = Arc::clone(context) as LogContext;
            with_log_context(&lines, || observe::log(&answer, elapsed, self.config.slow_after));
        }
        answer.finish(&context.activity_id, elapsed, self.now())
    }

    /// Who is asking, and for what.
    fn check(&self, head: &HttpHead) -> Result<(Principal, Caller, Route), WireError> {
        let path = Path::parse(&head.path, head.query.as_deref())?;
        let is_refused = path.asks_addresses() && !self.config.direct;
        let headers = Headers::new(&head.headers);
        let claim = Claim {
            verb: head.method.as_str(),
            segments: path.segments(),
            other_links: &path.links_with_slashes(),
            authorization: headers.text("authorization"),
            ms_date: headers.text("x-ms-date"),
            date: headers.text("date"),
        };
        let principal = auth::authenticate(claim, self.trusted(), self.times())?;
        headers.check_readable()?;
        headers.check_dialect()?;
        headers.check_consistency()?;
        let caller = headers.caller(self.service.limits())?;
        if is_refused {
            return Err(PathError::DirectMode.into());
        }
        Ok((principal, caller, path.route()?))
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.runtime.clock.now().as_unix_ms())
    }

    fn trusted(&self) -> Trusted<'_> {
        let GatewayConfig { keys, issuers, tokens_with_keys, skew_secs_max, .. } = &self.config;
        let (tokens_with_keys, skew_secs_max) = (*tokens_with_keys, *skew_secs_max);
        Trusted { keys, issuers, tokens_with_keys, skew_secs_max }
    }

    fn times(&self) -> Times {
        let clients = self.runtime.clock.machine_now().as_unix_ms();
        Times { server: self.now(), clients: Timestamp::from_millis(clients) }
    }

    /// The client's id for this exchange, or a new one.
    fn activity_id(&self, headers: &HeaderMap) -> String {
        let given = Headers::new(headers).text(ACTIVITY_ID);
        if let Some(id) = given
            .filter(|id| id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-'))
        {
            return id.to_owned();
        }
        let (high, low) = (self.runtime.random.next_u64(), self.runtime.random.next_u64());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xFFFF,
            high & 0xFFF,
            low >> 48 & 0x3FFF | 0x8000,
            low & 0xFFFF_FFFF_FFFF
        )
    }
}

impl Call<'_> {
    async fn answer(&self, route: Route) -> Result<Answer, WireError> {
        match route {
            Route::Account => account::answer(self),
            Route::Addresses { of, filter } => addresses::answer(self, of, filter).await,
            Route::Feed { parent, kind } => resources::feed(self, parent, kind).await,
            Route::Resource { link } => resources::resource(self, link).await,
            Route::Items { container } => items::feed(self, container).await,
            Route::Item { container, id } => items::item(self, container, &id).await,
            Route::Ranges { container } => ranges::feed(self, container).await,
            Route::Conflicts { container } => conflicts::feed(self, container).await,
            Route::Conflict { container } => conflicts::conflict(self, container).await,
            Route::KeyDelete { .. } => {
                self.require_key()?;
                let message = "The partition key delete feature is disabled on this server.";
                Err(WireError::bad_request(message))
            }
            Route::Later { what } => {
                self.require_key()?;
                Err(WireError::later(what))
            }
        }
    }

    pub(crate) async fn catalogue<V: Verb>(
        &self,
        verb: V,
    ) -> Result<Response<V::Reply>, WireError> {
        Ok(self.execute(verb).await?)
    }

    pub(crate) async fn container<V: ContainerVerb>(
        &self,
        container: Link,
        verb: V,
    ) -> Result<Response<V::Reply>, WireError> {
        Ok(self.try_container(container, verb).await?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.gateway.now()
    }

    /// What a permission grants to the holder of its token.
    pub(crate) async fn grant(&self, permission: &Value) -> Option<PermissionGrant> {
        self.gateway.service.grant(permission).await
    }

    /// Whether clients may use direct mode.
    pub(crate) fn is_direct(&self) -> bool {
        self.gateway.config.direct
    }

    pub(crate) fn region(&self) -> &str {
        &self.gateway.config.region
    }

    pub(crate) fn signing_key(&self) -> Vec<u8> {
        self.gateway.config.keys.signing()
    }

    /// For what is refused to every principal: without a key one need not learn even that.
    fn require_key(&self) -> Result<(), WireError> {
        match self.principal {
            Principal::Account | Principal::Reader => Ok(()),
            Principal::Bearer(_) => Err(ServiceError::ControlPlane.into()),
            Principal::Anonymous | Principal::Holder(_) => Err(ServiceError::NotPermitted.into()),
        }
    }

    /// What clients ask first. Any credential will do, but of roles one that reads metadata.
    pub(crate) fn require_account(&self) -> Result<(), WireError> {
        match &self.principal {
            Principal::Bearer(bearer) => Ok(self.service().check_account_role(bearer)?),
            Principal::Anonymous
            | Principal::Holder(_)
            | Principal::Reader
            | Principal::Account => Ok(()),
        }
    }

    /// For conflicts, which are no verb of the service, as there are none: a role has to allow
    /// them, and a credential that only reads deletes none.
    pub(crate) fn require_conflicts(&self, container: &Link) -> Result<(), WireError> {
        let reads = *self.method != Method::DELETE;
        match &self.principal {
            Principal::Bearer(bearer) => {
                Ok(self.service().check_conflict_role(bearer, container)?)
            }
            Principal::Reader if !reads => Err(ServiceError::Forbidden.into()),
            Principal::Holder(grant) if !reads && grant.mode == Mode::Read => {
                Err(ServiceError::NotPermitted.into())
            }
            Principal::Anonymous
            | Principal::Holder(_)
            | Principal::Reader
            | Principal::Account => Ok(()),
        }
    }

    pub(crate) fn service(&self) -> &Service {
        &self.gateway.service
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.service().limits()
    }

    /// Like `container`, for callers that look into the error.
    pub(crate) async fn try_container<V: ContainerVerb>(
        &self,
        container: Link,
        verb: V,
    ) -> Result<Response<V::Reply>, Failure> {
        self.in_container(container, self.headers.merge_aware(), verb).await
    }

    /// The ranges of a container for requests about all of them together, whose clients
    /// need not know that there are any.
    pub(crate) async fn ranges_of(&self, container: Link) -> Result<Response<Ranges>, WireError> {
        Ok(self.in_container(container, true, ReadRanges).await?)
    }

    async fn in_container<V: ContainerVerb>(
        &self,
        container: Link,
        merge_aware: bool,
        verb: V,
    ) -> Result<Response<V::Reply>, Failure> {
        // Some clients print null values.
        let intended_rid = self
            .headers
            .text("x-ms-cosmos-intended-collection-rid")
            .filter(|rid| *rid != "null")
            .map(str::to_owned);
        self.execute(InContainer { container, intended_rid, addressed: None, merge_aware, verb })
            .await
    }

    async fn execute<V: Verb>(&self, verb: V) -> Result<Response<V::Reply>, Failure> {
        let principal = self.principal.clone();
        self.gateway.service.execute(Request { principal, caller: self.caller, verb }).await
    }

    pub(crate) fn body(&self) -> Result<&Bytes, WireError> {
        self.body.ok_or_else(WireError::too_large)
    }

    /// The body as JSON text, whichever of the two encodings it came in.
    pub(crate) fn json_text(&self) -> Result<Bytes, WireError> {
        let body = self.body()?;
        if !binary_json::is_binary(body) {
            return Ok(body.clone());
        }
        Ok(Bytes::from(binary_json::decode(body)?))
    }

    /// The body as JSON, for everything but items.
    pub(crate) fn json(&self) -> Result<Value, WireError> {
        Ok(json::parse(&self.json_text()?).map_err(ServiceError::from)?)
    }

    pub(crate) fn not_allowed(&self) -> WireError {
        let message = format!("The method {} is not allowed for this resource.", self.method);
        WireError::new(StatusCode::METHOD_NOT_ALLOWED, 0, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_reads(method: &Method, path: &str, headers: &[(&'static str, &'static str)]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| {
                let name = http::HeaderName::from_static(name);
                (name, http::HeaderValue::from_static(value))
            })
            .collect::<HeaderMap>();
        let route = Path::parse(path, None).and_then(|path| path.route()).unwrap();
        !changes(method, &route, Headers::new(&headers))
    }

    #[test]
    fn what_only_reads_is_told_from_what_changes() {
        let (docs, colls) = ("/dbs/d/colls/c/docs", "/dbs/d/colls");
        let query = ("content-type", "application/query+json");
        let is_query = ("x-ms-documentdb-isquery", "True");
        let plan = ("x-ms-cosmos-is-query-plan-request", "True");
        let batch = ("x-ms-cosmos-is-batch-request", "True");
        for (path, headers) in [
            (docs, &[query][..]),
            (docs, &[is_query]),
            (docs, &[plan]),
            (docs, &[plan, query]),
            (colls, &[is_query]),
        ] {
            assert!(only_reads(&Method::POST, path, headers), "{path} {headers:?}");
        }
        for (path, headers) in [
            (docs, &[][..]),
            (docs, &[batch]),
            (docs, &[batch, query]),
            (docs, &[("content-type", "application/json")]),
            (colls, &[]),
            // A header that has a meaning elsewhere.
            (colls, &[plan]),
            ("/dbs/d/colls/c/docs/1", &[query]),
            ("/dbs/d/colls/c/sprocs/p", &[query]),
        ] {
            assert!(!only_reads(&Method::POST, path, headers), "{path} {headers:?}");
        }
        for method in [Method::PUT, Method::DELETE, Method::PATCH] {
            assert!(!only_reads(&method, docs, &[query]), "{method}");
        }
        assert!(only_reads(&Method::GET, docs, &[]));
    }
}
