//! The door of the protocol: from the head of a request to its answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use service::identity::AccountKeys;
use service::{Operator, Principal, Service};
use storage::StorageError;

use crate::metrics::{self, Readings, RequestDurations};
use crate::process::Process;
use crate::reply::{
    self, OperatorReply, not_allowed, not_found, starting, unauthorised, with_type,
};
use crate::request::{OperatorRequest, OtherMethods, is_borne};
use crate::{backup, clock, keys, partitions, roles, scripts, throughput};

/// Where the official emulators have it.
const CERTIFICATE_PATH: &str = "/_explorer/emulator.pem";
const ROOT: &str = "/_orrery";

/// Answers operators.
#[derive(Debug)]
pub struct OperatorGateway {
    keys: Arc<AccountKeys>,
    certificate_pem: Bytes,
    durations: Arc<RequestDurations>,
    process: Arc<dyn Process>,
}

/// What to do with a request.
#[derive(Debug)]
pub enum Routed {
    /// This is the answer.
    Answered(OperatorReply),
    /// To be given to [`OperatorGateway::answer`] with its body.
    Request(OperatorRequest),
    /// It belongs to another protocol.
    NotOurs,
}

impl OperatorGateway {
    /// `certificate_pem` is public, for clients that have to trust it.
    #[must_use]
    pub fn new(
        keys: Arc<AccountKeys>,
        certificate_pem: Bytes,
        process: Arc<dyn Process>,
    ) -> OperatorGateway {
        OperatorGateway { keys, certificate_pem, durations: Arc::default(), process }
    }

    /// Where protocols note how long their requests took.
    #[must_use]
    pub fn durations(&self) -> &Arc<RequestDurations> {
        &self.durations
    }

    /// Finds out whether a request is for this protocol, and who is asking. Three paths are
    /// public: liveness, readiness, and the certificate to trust. Paths are compared as
    /// they were sent: another spelling is another path, and the other protocols require a
    /// signature for it.
    pub fn route<B>(&self, request: &Request<B>) -> Routed {
        let path = request.uri().path();
        if path == CERTIFICATE_PATH {
            return Routed::Answered(read_only(request.method(), || self.certificate()));
        }
        let Some(below) = path.strip_prefix(ROOT) else { return Routed::NotOurs };
        Routed::Answered(match below {
            "/health" => read_only(request.method(), || {
                reply::json(StatusCode::OK, &json!({ "status": "alive" }))
            }),
            "/ready" => read_only(request.method(), || self.ready()),
            _ if !below.is_empty() && !below.starts_with('/') => return Routed::NotOurs,
            _ if !is_borne(&self.keys, request.headers()) => unauthorised(),
            _ => match OperatorRequest::at(below, request.method(), request.uri().query()) {
                Ok(Some(request)) => return Routed::Request(request),
                Ok(None) => not_found(),
                Err(OtherMethods(allowed)) => not_allowed(allowed),
            },
        })
    }

    /// Does what the query or the body says. If it is a change, it must be polled to
    /// completion.
    pub async fn answer(&self, request: OperatorRequest, body: Bytes) -> OperatorReply {
        use OperatorRequest as Asked;
        let done = match (request, self.process.service()) {
            (Asked::ReadVersion, _) => Ok(version()),
            (Asked::ReadCounters, service) => Ok(self.counters(service)),
            (Asked::ReadBackup, _) => Ok(json!(self.process.backup())),
            (Asked::ReadKeys, _) => Ok(keys::show(&self.keys)),
            (Asked::RotateKey, _) => keys::rotate(&*self.process, &body).await,
            (_, None) => return starting(),
            (Asked::ReadMetrics, Some(service)) => return self.metrics(service).await,
            (Asked::ListPartitions(query), Some(service)) => {
                partitions::list(operator(service), &query).await
            }
            (Asked::Split, Some(service)) => partitions::split(operator(service), &body).await,
            (Asked::Merge, Some(service)) => partitions::merge(operator(service), &body).await,
            (Asked::ReadThroughput(query), Some(service)) => {
                throughput::show(operator(service), &query).await
            }
            (Asked::Redistribute, Some(service)) => {
                throughput::redistribute(operator(service), &body).await
            }
            (Asked::ListScripts(query), Some(service)) => {
                scripts::list(operator(service), &query).await
            }
            (Asked::ReadScript(query), Some(service)) => {
                scripts::show(operator(service), &query).await
            }
            (Asked::StoreScript, Some(service)) => scripts::store(operator(service), &body).await,
            (Asked::DeleteScript, Some(service)) => scripts::delete(operator(service), &body).await,
            (Asked::RunProcedure, Some(service)) => scripts::run(operator(service), &body).await,
            (Asked::ReadClock, Some(service)) => clock::show(&operator(service)),
            (Asked::AdvanceClock, Some(service)) => clock::advance(operator(service), &body).await,
            (Asked::ListRoles, Some(service)) => roles::list(&operator(service)),
            (Asked::ChangeRoles, Some(service)) => {
                roles::change(operator(service), service, &body).await
            }
            (Asked::BeginBackup, Some(_)) => {
                backup::begin(&*self.process, &body).map(|status| json!(status))
            }
        };
        match done {
            Ok(done) => reply::json(StatusCode::OK, &done),
            Err(error) => error.reply(),
        }
    }

    fn certificate(&self) -> OperatorReply {
        with_type(StatusCode::OK, self.certificate_pem.clone(), "application/x-pem-file")
    }

    fn ready(&self) -> OperatorReply {
        let not_ready = |status: &str, message: &str| {
            let body = json!({ "status": status, "message": message });
            reply::json(StatusCode::SERVICE_UNAVAILABLE, &body)
        };
        let Some(service) = self.process.service() else {
            return not_ready("opening", "The data is being opened.");
        };
        let store = service.store();
        match (store.health(), store.loss()) {
            (Ok(()), loss) => {
                let mut body = json!({ "status": "ready" });
                if let Some(loss) = loss {
                    body["lost"] = json!(loss.to_string());
                }
                if service.has_virtual_clock() {
                    body["clock"] = json!("virtual");
                }
                reply::json(StatusCode::OK, &body)
            }
            (Err(error @ StorageError::Full { .. }), _) => not_ready("full", &error.to_string()),
            (Err(error), _) => not_ready("failed", &error.to_string()),
        }
    }

    fn counters(&self, service: Option<&Arc<Service>>) -> Value {
        let mut body = self.process.figures().to_json();
        if let Some(service) = service {
            let store = service.store().counters();
            body["store"] = json!({
                "batchesSubmitted": store.batches_submitted,
                "batchesDurable": store.batches_durable,
                "commits": store.commits,
                "syncs": store.syncs,
                "keys": store.keys,
                "bytes": store.bytes,
            });
        }
        body
    }

    async fn metrics(&self, service: &Service) -> OperatorReply {
        // A scrape should return the metrics that can be read.
        let containers = operator(service).usage().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "what the containers hold cannot be read for metrics");
            Vec::new()
        });
        let scripts = operator(service).counted_scripts().unwrap_or_default();
        let read = Readings { containers, scripts, process: self.process.figures() };
        let text = metrics::encode(&self.durations, read);
        with_type(StatusCode::OK, Bytes::from(text), metrics::FORMAT)
    }
}

/// The verbs for the holder of the key: [`OperatorGateway::route`] lets no one else in.
fn operator(service: &Service) -> Operator<'_> {
    service.operator(Principal::Account)
}

fn version() -> Value {
    json!({ "name": "orrery", "version": env!("CARGO_PKG_VERSION") })
}

fn read_only(method: &Method, reply: impl FnOnce() -> OperatorReply) -> OperatorReply {
    match *method {
        Method::GET | Method::HEAD => reply(),
        _ => not_allowed("GET, HEAD"),
    }
}
