//! One HTTP request through this protocol.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use model::json::{self, Value};
use model::limits::Limits;
use model::position::Timestamp;
use runtime::Runtime;
use service::{
    Action, Caller, CatalogueAction, ContainerAction, Failure, Grant, Link, Principal, Request,
    Response, Service, ServiceError,
};

use crate::auth::{self, AccountKeys, Claim};
use crate::error::WireError;
use crate::headers::{ACTIVITY_ID, Headers};
use crate::reply::Answer;
use crate::route::{Path, Route};
use crate::{account, binary_json, conflicts, items, ranges, resources};

/// Largest body that is read. Items may have 2 MB and a batch as much in all;
/// what is larger is refused without reading on.
pub const BODY_BYTES_MAX: usize = (2 << 20) + (64 << 10);

/// How the gateway behaves. Plain data.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    pub keys: AccountKeys,
    /// How far the clock of a signed request may be off.
    pub skew_secs_max: u64,
}

/// A request whose body has been read.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    pub method: Method,
    /// The path as it stands in the request line, without the query.
    pub path: String,
    pub headers: HeaderMap,
    /// `None` when it was larger than [`BODY_BYTES_MAX`].
    pub body: Option<Bytes>,
    /// `http` or `https`, as the client sees it.
    pub scheme: &'static str,
}

/// What goes back.
pub type HttpResponse = http::Response<Bytes>;

/// The protocol in front of a service.
#[derive(Debug)]
pub struct Gateway {
    service: Arc<Service>,
    runtime: Runtime,
    config: GatewayConfig,
}

/// A request that was let in.
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
        Gateway { service, runtime, config }
    }

    /// Answers one request, whatever it is.
    pub async fn answer(&self, request: HttpRequest) -> HttpResponse {
        let started = self.runtime.clock.monotonic();
        let activity_id = self.activity_id(&request.headers);
        let answer = self
            .try_answer(&request)
            .await
            .unwrap_or_else(|error| Answer::error(&error, &activity_id));
        let elapsed = self.runtime.clock.monotonic().saturating_sub(started);
        tracing::debug!(method = %request.method, path = %request.path, status = %answer.status(), "answered");
        answer.finish(&activity_id, elapsed, self.now())
    }

    async fn try_answer(&self, request: &HttpRequest) -> Result<Answer, WireError> {
        let path = Path::parse(&request.path)?;
        let headers = Headers::new(&request.headers);
        let claim = Claim {
            verb: request.method.as_str(),
            path: &path,
            authorization: headers.text("authorization"),
            ms_date: headers.text("x-ms-date"),
            date: headers.text("date"),
        };
        let principal =
            auth::authenticate(claim, &self.config.keys, self.now(), self.config.skew_secs_max)?;
        headers.check_readable()?;
        headers.check_consistency()?;
        let call = Call {
            gateway: self,
            principal,
            caller: headers.caller(self.service.limits())?,
            method: &request.method,
            headers,
            body: request.body.as_ref(),
            scheme: request.scheme,
        };
        match path.route()? {
            Route::Account => account::answer(&call),
            Route::Feed { parent, kind } => resources::feed(&call, parent, kind).await,
            Route::Resource { link } => resources::resource(&call, link).await,
            Route::Items { container } => items::feed(&call, container).await,
            Route::Item { container, id } => items::item(&call, container, &id).await,
            Route::Ranges { container } => ranges::feed(&call, container).await,
            Route::Conflicts { container } => conflicts::feed(&call, container).await,
            Route::Conflict { container } => conflicts::conflict(&call, container).await,
            Route::KeyDelete { .. } => {
                call.require_key()?;
                let message = "The partition key delete feature is disabled on this server.";
                Err(WireError::bad_request(message))
            }
            Route::Later { what } => {
                call.require_key()?;
                Err(WireError::later(what))
            }
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.runtime.clock.now().as_unix_ms())
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
    pub(crate) async fn catalogue(&self, action: CatalogueAction) -> Result<Response, WireError> {
        Ok(self.execute(Action::Catalogue(action)).await?)
    }

    pub(crate) async fn container(
        &self,
        container: Link,
        action: ContainerAction,
    ) -> Result<Response, WireError> {
        Ok(self.try_container(container, action).await?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.gateway.now()
    }

    /// What a permission gives to whoever holds a token of it.
    pub(crate) fn grant(&self, permission: &Value) -> Option<Grant> {
        self.gateway.service.grant(permission)
    }

    pub(crate) fn signing_key(&self) -> &[u8] {
        self.gateway.config.keys.signing()
    }

    /// For what is refused to everybody: others need not learn even that.
    fn require_key(&self) -> Result<(), WireError> {
        match self.principal {
            Principal::Account | Principal::Reader => Ok(()),
            Principal::Anonymous | Principal::Holder(_) => Err(ServiceError::NotPermitted.into()),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        self.gateway.service.limits()
    }

    /// Like `container`, for callers that look into the error.
    pub(crate) async fn try_container(
        &self,
        container: Link,
        action: ContainerAction,
    ) -> Result<Response, Failure> {
        self.in_container(container, self.headers.merge_aware(), action).await
    }

    /// The ranges of a container for what is told of all of them together, for which
    /// the client need not know that there are any.
    pub(crate) async fn ranges_behind(&self, container: Link) -> Result<Response, WireError> {
        Ok(self.in_container(container, true, ContainerAction::ReadRanges).await?)
    }

    async fn in_container(
        &self,
        container: Link,
        merge_aware: bool,
        action: ContainerAction,
    ) -> Result<Response, Failure> {
        let intended_rid =
            self.headers.text("x-ms-cosmos-intended-collection-rid").map(str::to_owned);
        self.execute(Action::Container { container, intended_rid, merge_aware, action }).await
    }

    async fn execute(&self, action: Action) -> Result<Response, Failure> {
        let principal = self.principal.clone();
        let request = Request { caller: self.caller, ..Request::new(principal, action) };
        self.gateway.service.execute(request).await
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
        WireError::method_not_allowed(self.method)
    }
}
