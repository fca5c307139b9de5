//! One frame through this protocol.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use model::position::Timestamp;
use protocol::address::{Addressed, ReplicaPath};
use protocol::auth::{self, Claim, Times, Trusted};
use protocol::binary_json;
use protocol::error::WireError;
use runtime::{Runtime, on_async_worker};
use service::identity::{AccountKeys, Issuer};
use service::{
    Caller, ContainerVerb, Failure, InContainer, Link, PartitionId, Principal, Request, Response,
    Service, ServiceError, Verb,
};

use crate::codec::{
    ContextAnswer, ContextRequest, FrameWriter, Known, OperationType, RequestHead, ResourceType,
    request,
};
use crate::parameters::Parameters;
pub use crate::reply::DirectAnswer;
use crate::reply::{Echo, Reply};
use crate::subject::{self, Subject, unsupported};
use crate::{batches, consistency, feeds, items, master};

/// What clients show as the agent and the version behind every answer.
const SERVER_AGENT: &str = "Orrery";
const SERVER_VERSION: &str = concat!("version=orrery ", env!("CARGO_PKG_VERSION"));

/// Clients read these two and do nothing with them: connections are not closed for being idle.
const IDLE_TIMEOUT_SECS: u32 = 1_800;
const UNAUTHENTICATED_TIMEOUT_SECS: u32 = 60;

/// The sub-statuses of 410 that this protocol has for itself: the names that the client keeps are
/// outdated.
const NAME_CACHE_STALE: u32 = 1000;

/// The longest answer to one item, and what an answer has besides what the request contained.
const ITEM_ANSWER_BYTES_MAX: usize = (2 << 20) + (4 << 10);
const PAGE_ANSWER_BYTES_MAX: usize = (4 << 20) + (64 << 10);
const ANSWER_EXTRA_BYTES: usize = 4 << 10;

/// How the gateway behaves. Plain data.
#[derive(Clone, Debug)]
pub struct DirectConfig {
    /// Shared with the server, which replaces them.
    pub keys: Arc<AccountKeys>,
    /// Identity providers whose tokens are accepted.
    pub issuers: Arc<[Issuer]>,
    /// Whether tokens are accepted that have a key of the account in them.
    pub tokens_with_keys: bool,
    /// How far the clock of a signed request may be off.
    pub skew_secs_max: u64,
}

/// The protocol on top of a service.
#[derive(Debug)]
pub struct DirectGateway {
    service: Arc<Service>,
    runtime: Runtime,
    config: DirectConfig,
}

/// The answer to the first frame of a connection.
#[derive(Debug)]
pub struct Greeting {
    pub answer: Vec<u8>,
    /// Otherwise the connection is to be closed after the answer.
    pub accepted: bool,
}

/// An authorised request: the caller is known. Only [`DirectGateway::let_in`] makes one, and
/// [`DirectGateway::answer`] requires it, so the payload of an unauthorised request is never kept.
#[derive(Debug)]
pub struct DirectLetIn {
    head: Bytes,
    asked: Asked,
    principal: Principal,
}

/// A request whose answer got lost on the way.
#[derive(Clone, Copy, Debug)]
pub struct Unanswered {
    echo: Echo,
}

impl Unanswered {
    /// An answer that says why there is no other.
    #[must_use]
    pub fn because(self, status: StatusCode, message: &str) -> DirectAnswer {
        let error = WireError::new(status, 0, message);
        Reply::error(&error).finish(self.echo, Duration::ZERO)
    }
}

/// What a head says about all else.
#[derive(Clone, Debug)]
struct Asked {
    resource: ResourceType,
    operation: OperationType,
    subject: Subject,
    addressed: Addressed,
    caller: Caller,
    echo: Echo,
}

impl DirectLetIn {
    /// Whether it changes something. If not, it need not be completed once its client has gone.
    #[must_use]
    pub fn is_change(&self) -> bool {
        use OperationType::{
            Batch, Connection, Create, Delete, ExecuteJavaScript, Head, HeadFeed, Patch, Query,
            QueryPlan, Read, ReadFeed, Replace, SqlQuery, Upsert,
        };
        match self.asked.operation {
            Create | Upsert | Replace | Patch | Delete | Batch | ExecuteJavaScript => true,
            Read | ReadFeed | Query | SqlQuery | QueryPlan | Head | HeadFeed | Connection => false,
        }
    }

    /// What is left of it when it is given away: enough for an answer that only says why there is
    /// no other.
    #[must_use]
    pub fn unanswered(&self) -> Unanswered {
        Unanswered { echo: self.asked.echo }
    }

    /// How long the answer to a payload of that length can become: an estimate for reserving
    /// memory.
    #[must_use]
    pub fn answer_bytes_max(&self, payload_bytes: usize) -> usize {
        let echoed = payload_bytes.saturating_add(ANSWER_EXTRA_BYTES);
        match self.asked.operation {
            OperationType::Read | OperationType::Patch | OperationType::ExecuteJavaScript => {
                ITEM_ANSWER_BYTES_MAX
            }
            OperationType::Head | OperationType::HeadFeed | OperationType::Delete => {
                ANSWER_EXTRA_BYTES
            }
            OperationType::Create | OperationType::Upsert | OperationType::Replace => echoed,
            OperationType::ReadFeed
            | OperationType::Query
            | OperationType::SqlQuery
            | OperationType::QueryPlan
            | OperationType::Batch
            | OperationType::Connection => PAGE_ANSWER_BYTES_MAX,
        }
    }
}

/// The context of an authorised request.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    gateway: &'a DirectGateway,
    principal: Principal,
    caller: Caller,
    addressed: Addressed,
    pub(crate) resource: ResourceType,
    pub(crate) operation: OperationType,
    pub(crate) subject: &'a Subject,
    pub(crate) parameters: Parameters<'a>,
    payload: Option<&'a Bytes>,
}

impl DirectGateway {
    #[must_use]
    pub fn new(service: Arc<Service>, runtime: Runtime, config: DirectConfig) -> DirectGateway {
        DirectGateway { service, runtime, config }
    }

    /// Answers the first frame of a connection, given its head. `None` if it is not even a frame.
    #[must_use]
    pub fn greet(&self, head: &[u8]) -> Option<Greeting> {
        let head = RequestHead::read(head).ok()?;
        let mut answer = Vec::new();
        match ContextRequest::read(&head) {
            Ok(asked) => {
                let context = ContextAnswer {
                    client_version: asked.client_version,
                    server_agent: SERVER_AGENT,
                    server_version: SERVER_VERSION,
                    idle_timeout_secs: IDLE_TIMEOUT_SECS,
                    unauthenticated_timeout_secs: UNAUTHENTICATED_TIMEOUT_SECS,
                };
                context.write(head.activity_id, &mut answer).ok()?;
                Some(Greeting { answer, accepted: true })
            }
            Err(error) => {
                let report = WireError::bad_request(error.to_string()).report().to_string();
                let status = u32::from(StatusCode::BAD_REQUEST.as_u16());
                // The payload follows although no token announces it: in this answer none can.
                let frame = FrameWriter::response(&mut answer, status, head.activity_id);
                frame.finish(Some(report.len())).ok()?;
                answer.extend_from_slice(report.as_bytes());
                Some(Greeting { answer, accepted: false })
            }
        }
    }

    /// Decides by its head alone whether a request is accepted. `None` if the connection cannot
    /// go on: without an id an answer would belong to no request.
    ///
    /// # Errors
    /// The answer to one that is not.
    pub fn let_in(&self, head: Bytes) -> Option<Result<DirectLetIn, Box<DirectAnswer>>> {
        let read = RequestHead::read(&head).ok()?;
        let request_id = read.tokens.find(request::TRANSPORT_REQUEST_ID)?;
        let path = read.tokens.find(request::REPLICA_PATH).and_then(ReplicaPath::parse);
        let addressed = path.map(|path| path.of);
        let echo = Echo { activity_id: read.activity_id, request_id, addressed };
        let checked = self.check(&read, echo);
        Some(match checked {
            Ok((asked, principal)) => Ok(DirectLetIn { head, asked, principal }),
            Err(error) => Err(Box::new(Reply::error(&error).finish(echo, Duration::ZERO))),
        })
    }

    /// Who is asking, and for what.
    fn check(&self, head: &RequestHead<'_>, echo: Echo) -> Result<(Asked, Principal), WireError> {
        let malformed = |message: String| WireError::bad_request(message);
        let tokens =
            head.tokens.check(&request::TABLE).map_err(|error| malformed(error.to_string()))?;
        let kinds =
            ResourceType::of(head.resource_type).zip(OperationType::of(head.operation_type));
        let (resource, operation) = kinds.ok_or_else(|| {
            let (resource, operation) = (head.resource_type, head.operation_type);
            malformed(format!("There is no operation {operation} on resources of type {resource}."))
        })?;
        let subject = Subject::of(resource, operation, &tokens)?;
        let claim = Claim {
            verb: subject::verb(operation),
            segments: subject.segments(),
            other_links: &[],
            authorization: tokens.get(request::AUTHORIZATION_TOKEN),
            ms_date: tokens.get(request::DATE),
            date: None,
        };
        let principal = auth::authenticate(claim, self.trusted(), self.times())?;
        let parameters = Parameters::new(tokens);
        let addressed =
            echo.addressed.ok_or_else(|| stale("The replica path is not known here."))?;
        // Clients read from the master partition with a quorum, whatever the account's level is.
        if addressed != Addressed::Master {
            parameters.check_consistency()?;
        }
        let caller = parameters.caller(self.service.limits())?;
        Ok((Asked { resource, operation, subject, addressed, caller, echo }, principal))
    }

    /// Answers a request, whatever it is. The payload is `None` when it was larger than bodies
    /// may be.
    pub async fn answer(&self, request: DirectLetIn, payload: Option<Bytes>) -> DirectAnswer {
        let started = self.runtime.clock.monotonic();
        let DirectLetIn { head, asked, principal } = request;
        let read = RequestHead::read(&head).expect("it was read when it was let in");
        let tokens = read.tokens.check(&request::TABLE).expect("they were checked then");
        let call = self.call(&asked, principal, tokens, payload.as_ref());
        let answering = Box::pin(on_async_worker(call.answer()));
        let answered = answering.await.map_err(|error| {
            let link = asked.subject.segments().join("/");
            of_direct_mode(error.of_request(subject::verb(asked.operation), &link))
        });
        let reply = answered.unwrap_or_else(|error| Reply::error(&error));
        let elapsed = self.runtime.clock.monotonic().saturating_sub(started);
        reply.finish(asked.echo, elapsed)
    }

    fn call<'a>(
        &'a self,
        asked: &'a Asked,
        principal: Principal,
        tokens: Known<'a>,
        payload: Option<&'a Bytes>,
    ) -> Call<'a> {
        Call {
            gateway: self,
            principal,
            caller: asked.caller,
            addressed: asked.addressed,
            resource: asked.resource,
            operation: asked.operation,
            subject: &asked.subject,
            parameters: Parameters::new(tokens),
            payload,
        }
    }

    fn trusted(&self) -> Trusted<'_> {
        let DirectConfig { keys, issuers, tokens_with_keys, skew_secs_max } = &self.config;
        let (tokens_with_keys, skew_secs_max) = (*tokens_with_keys, *skew_secs_max);
        Trusted { keys, issuers, tokens_with_keys, skew_secs_max }
    }

    fn times(&self) -> Times {
        let clock = &self.runtime.clock;
        Times {
            server: Timestamp::from_millis(clock.now().as_unix_ms()),
            clients: Timestamp::from_millis(clock.machine_now().as_unix_ms()),
        }
    }
}

/// What the client knows is outdated: it reads names, ranges and addresses again.
fn stale(message: &str) -> WireError {
    WireError::new(StatusCode::GONE, NAME_CACHE_STALE, message)
}

/// The same error as this protocol says it: a container that was created again has another
/// status here, on which clients look its name up again.
fn of_direct_mode(error: WireError) -> WireError {
    const RECREATED: (StatusCode, u32) = (StatusCode::BAD_REQUEST, 1024);
    if (error.status, error.substatus) == RECREATED {
        return WireError { meta: error.meta.clone(), ..stale(&error.message) };
    }
    error
}

impl Call<'_> {
    async fn answer(&self) -> Result<Reply, WireError> {
        use OperationType::{
            Batch, Create, Delete, Head, HeadFeed, Patch, Query, Read, ReadFeed, Replace, SqlQuery,
            Upsert,
        };
        let is_item = self.resource == ResourceType::Document;
        match (self.operation, self.addressed) {
            (Head | HeadFeed, _) => consistency::barrier(self).await,
            (Read | Create | Upsert | Replace | Patch | Delete, Addressed::Range(..))
                if is_item =>
            {
                items::answer(self).await
            }
            (Batch, Addressed::Range(..)) if is_item => batches::answer(self).await,
            (ReadFeed, Addressed::Range(..)) if is_item => feeds::list(self).await,
            (Query | SqlQuery, Addressed::Range(..)) if is_item => feeds::query(self).await,
            (Read, _) if !is_item => master::read(self).await,
            (ReadFeed, _) if !is_item => master::list(self).await,
            (Query | SqlQuery, _) if !is_item => master::query(self).await,
            _ => Err(unsupported(self.resource, self.operation)),
        }
    }

    /// The range that was addressed; none at the master partition.
    pub(crate) fn range(&self) -> Option<PartitionId> {
        match self.addressed {
            Addressed::Master => None,
            Addressed::Range(_, range) => Some(range),
        }
    }

    pub(crate) fn range_gone(&self, range: PartitionId) -> WireError {
        let container = match self.addressed {
            Addressed::Master => String::new(),
            Addressed::Range(rid, _) => rid.to_string(),
        };
        ServiceError::RangeGone { range: range.0, container }.into()
    }

    pub(crate) fn service(&self) -> &Service {
        &self.gateway.service
    }

    pub(crate) async fn catalogue<V: Verb>(
        &self,
        verb: V,
    ) -> Result<Response<V::Reply>, WireError> {
        Ok(self.execute(verb).await?)
    }

    /// Asks the container, which must be the one that the client knows by that name, and the
    /// partition that it has addressed.
    pub(crate) async fn container<V: ContainerVerb>(
        &self,
        container: Link,
        verb: V,
    ) -> Result<Response<V::Reply>, WireError> {
        Ok(self.try_container(container, verb).await??)
    }

    /// Like `container`, for callers that look into the service's error.
    pub(crate) async fn try_container<V: ContainerVerb>(
        &self,
        container: Link,
        verb: V,
    ) -> Result<Result<Response<V::Reply>, Failure>, WireError> {
        let of_path = match self.addressed {
            Addressed::Master => None,
            Addressed::Range(rid, _) => Some(rid.to_string()),
        };
        let named = self.parameters.text(request::COLLECTION_RID).filter(|rid| !rid.is_empty());
        if let (Some(of_path), Some(named)) = (&of_path, named)
            && of_path != named
        {
            return Err(stale("The replica path belongs to another container."));
        }
        let intended_rid = of_path.or_else(|| named.map(str::to_owned));
        let (addressed, merge_aware) = (self.range(), self.parameters.merge_aware());
        let request = InContainer { container, intended_rid, addressed, merge_aware, verb };
        Ok(self.execute(request).await)
    }

    async fn execute<V: Verb>(&self, verb: V) -> Result<Response<V::Reply>, Failure> {
        let principal = self.principal.clone();
        self.gateway.service.execute(Request { principal, caller: self.caller, verb }).await
    }

    pub(crate) fn body(&self) -> Result<&Bytes, WireError> {
        self.payload.ok_or_else(WireError::too_large)
    }

    /// The payload as JSON text, whichever of the two encodings it came in.
    pub(crate) fn json_text(&self) -> Result<Bytes, WireError> {
        let body = self.body()?;
        if !binary_json::is_binary(body) {
            return Ok(body.clone());
        }
        Ok(Bytes::from(binary_json::decode(body)?))
    }
}
