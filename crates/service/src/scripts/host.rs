//! What a script can reach: one logical partition, as a transaction on trial.
//!
//! Operations on items are tried on the snapshot by [`Trial`]; queries run on the same
//! snapshot, on a query thread, and do not see what the script has written.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use cluster::{Cursor, OwnerSnapshot, PageBounds, PartitionId, QueryQueue, ScriptTurn};
use model::charge::{Charge, Work};
use model::epk::{Epk, EpkRange};
use model::json::{self, Value};
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::position::{Lsn, Timestamp};
use model::rid::ItemRid;
use model::system_properties::SystemProperties;
use partition::{Approach, Document, Effect, EffectKind, EtagMatch, Operation, Trial, Tried};
use runtime::Runtime;
use script::{
    Environment, FeedPage, FeedSource, Host, HostReason, HostRefusal, IndexAction, ItemLink,
    Question, Read,
};

use super::functions::ContainerFunctions;
use super::transaction::Place;
use crate::error::ServiceError;
use crate::items::queries::Compiler;
use crate::pipeline::account;
use crate::pipeline::resolve::ResolvedContainer;
use crate::request::{ItemQuery, QuerySource, Scope};
use crate::service::Service;

/// A script is told to return what it has when this much of its time is left: what it has
/// queued by then still has to be done.
const TIME_LEFT_MIN: Duration = Duration::from_secs(1);

/// The service's words for a document of another logical partition.
const OTHER_KEY: &str = "Requests originating from scripts cannot reference partition keys other \
                         than the one for which client request was submitted.";

/// What a host is made of, before there is a thread for it.
pub(crate) struct Stage {
    entry: ResolvedContainer,
    key: PartitionKey,
    position: Epk,
    system: Arc<SystemProperties>,
    limits: Arc<Limits>,
    runtime: Runtime,
    queries: QueryQueue,
    compiler: Compiler,
    functions: Arc<ContainerFunctions>,
    bounds: PageBounds,
    now: Timestamp,
}

impl Stage {
    pub(crate) fn new(service: &Service, place: &Place<'_>) -> Result<Stage, ServiceError> {
        let functions = service.functions(place.entry)?;
        let compiler = service.compiler(place.entry).calling(Some(Arc::clone(&functions)));
        Ok(Stage {
            entry: place.entry.clone(),
            key: place.key.clone(),
            position: place.position.clone(),
            system: Arc::clone(&place.system),
            limits: Arc::clone(&service.limits),
            runtime: service.runtime.clone(),
            queries: service.cluster.query_queue(),
            compiler,
            functions,
            bounds: service.page_bounds(1),
            now: service.now(),
        })
    }
}

/// The host of one run.
pub(crate) struct ScriptHost {
    stage: Stage,
    snapshot: OwnerSnapshot,
    trial: Trial,
    turn: Arc<ScriptTurn>,
    read: Charge,
    written: Charge,
}

impl ScriptHost {
    /// On a snapshot of this moment.
    pub(crate) fn new(stage: Stage, turn: &Arc<ScriptTurn>) -> Result<ScriptHost, ServiceError> {
        let snapshot = stage.entry.container.snapshot(&stage.position)?;
        let trial = Trial::new(Arc::clone(snapshot.snapshot()), stage.position.clone(), stage.now)?;
        let (read, written) = (Charge::ZERO, Charge::ZERO);
        Ok(ScriptHost { stage, snapshot, trial, turn: Arc::clone(turn), read, written })
    }

    /// The partition that the snapshot is of, and its position.
    pub(crate) fn seen(&self) -> (PartitionId, Lsn) {
        (self.snapshot.range(), self.snapshot.snapshot().lsn())
    }

    /// The charge of reads, queries, what those called, and refused operations.
    pub(crate) fn read_charge(&self) -> Charge {
        self.read + account::charge(&self.stage.functions.work())
    }

    /// The charge of writes, if they are not committed.
    pub(crate) fn write_charge(&self) -> Charge {
        self.written
    }

    /// Whether the client has gone, or the server stops.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.turn.is_cancelled()
    }

    /// How much was written so far.
    pub(crate) fn writes(&self) -> usize {
        self.trial.writes()
    }

    pub(crate) fn finish(self) -> Tried {
        self.trial.finish()
    }

    /// Executes an operation, and counts what it costs.
    pub(crate) fn perform(&mut self, operation: Operation) -> Result<Effect, ServiceError> {
        let attempt = operation.attempt();
        match self.trial.perform(operation) {
            Ok(effect) => {
                let charge = account::charge(&effect.work);
                if matches!(effect.work, Work::Write(_)) {
                    self.written += charge;
                } else {
                    self.read += charge;
                }
                Ok(effect)
            }
            Err(problem) => {
                self.read += account::charge(&problem.work(attempt));
                Err(problem.into())
            }
        }
    }

    /// A document that may be written here.
    pub(crate) fn document(&self, body: &str) -> Result<Document, ServiceError> {
        let document =
            Document::parse(Bytes::copy_from_slice(body.as_bytes()), &self.stage.limits)?;
        let definition = self.stage.entry.key_definition();
        let key = definition.extract(document.json())?;
        let is_ours = definition.paths().is_empty() || key == self.stage.key;
        if is_ours { Ok(document) } else { Err(ServiceError::KeyMismatch) }
    }

    fn id(&mut self, item: &ItemLink) -> Result<ItemId, ServiceError> {
        let rid = match item {
            ItemLink::Id(id) => return Ok(ItemId::parse(id)?),
            ItemLink::Rid(rid) => rid,
        };
        let rid = ItemRid::parse(rid).ok();
        let rid = rid.filter(|rid| rid.container() == self.stage.entry.rid);
        let rid = rid.ok_or_else(|| ServiceError::invalid("The document link is invalid."))?;
        let id = self.trial.id_of(rid.ordinal())?.ok_or(ServiceError::NotFound)?;
        Ok(ItemId::parse(&id)?)
    }

    /// An item as scripts see it.
    pub(crate) fn shown(&self, effect: &Effect) -> String {
        let text = effect.text.as_deref().and_then(|text| std::str::from_utf8(text).ok());
        match (text, &effect.stamp) {
            (Some(text), Some(stamp)) => self.stage.system.shown(text, stamp),
            (text, _) => text.unwrap_or_default().to_owned(),
        }
    }

    fn write(&mut self, operation: Operation) -> Result<String, HostRefusal> {
        let effect = self.perform(operation).map_err(refusal)?;
        Ok(self.shown(&effect))
    }

    fn page(&mut self, question: &Question<'_>) -> Result<FeedPage, ServiceError> {
        let query = self.item_query(question)?;
        let rows = query.items_max.max(1);
        let bounds = PageBounds { rows, time: self.turn.left(), ..self.stage.bounds };
        let (compiler, snapshot) = (self.stage.compiler.clone(), self.snapshot.clone());
        let now = self.stage.now;
        let page = self
            .stage
            .queries
            .wait_for(move |turn| compiler.answer_on(&snapshot, (now, bounds), query, turn))??;
        for part in &page.served {
            self.read += account::charge(&Work::Query(part.value));
        }
        let text = |row: Bytes| String::from_utf8(row.into()).map_err(ServiceError::internal);
        let documents = page.rows.into_iter().map(text).collect::<Result<_, _>>()?;
        let continuation = page.rest.map(|rest| URL_SAFE_NO_PAD.encode(rest.to_bytes()));
        Ok(FeedPage { documents, continuation })
    }

    fn item_query(&self, question: &Question<'_>) -> Result<ItemQuery, ServiceError> {
        let (text, parameters) = match question.source {
            FeedSource::All => ("SELECT * FROM root".to_owned(), Value::Null),
            FeedSource::Text(text) => (text.to_owned(), Value::Null),
            FeedSource::Json(text) => statement(text)?,
        };
        let after = question.continuation.map(cursor).transpose()?;
        let within = EpkRange::of(self.stage.position.clone());
        Ok(ItemQuery {
            source: QuerySource::Text(text),
            parameters,
            scope: Scope { key: Some(self.stage.key.clone()), range: None, within },
            across_partitions: false,
            merges: true,
            session: None,
            after,
            resume: None,
            items_max: usize::try_from(question.items_max).unwrap_or(usize::MAX),
            approach: Approach::default(),
            system: Some(Arc::clone(&self.stage.system)),
            is_timed: false,
            names_indexes: false,
        })
    }
}

impl Environment for ScriptHost {
    fn now_ms(&mut self) -> i64 {
        let now = self.stage.runtime.clock.now().as_unix_ms();
        i64::try_from(now).unwrap_or(i64::MAX)
    }

    fn random(&mut self) -> u64 {
        self.stage.runtime.random.next_u64()
    }

    fn is_out_of_time(&mut self) -> bool {
        self.turn.left().is_zero() || self.turn.is_cancelled()
    }
}

impl Host for ScriptHost {
    fn accepts(&mut self) -> bool {
        self.turn.left() >= TIME_LEFT_MIN
    }

    fn read(&mut self, item: &ItemLink, unless: Option<&str>) -> Result<Read, HostRefusal> {
        let id = self.id(item).map_err(refusal)?;
        let if_none_match = unless.map(|etag| EtagMatch(etag.to_owned()));
        let effect = self.perform(Operation::Read { id, if_none_match }).map_err(refusal)?;
        if effect.kind == EffectKind::NotModified {
            return Ok(Read::NotModified);
        }
        Ok(Read::Document(self.shown(&effect)))
    }

    fn create(&mut self, body: &str, _: IndexAction) -> Result<String, HostRefusal> {
        let document = self.document(body).map_err(refused_document)?;
        self.write(Operation::Create { document })
    }

    fn upsert(&mut self, body: &str, _: IndexAction) -> Result<String, HostRefusal> {
        let document = self.document(body).map_err(refused_document)?;
        self.write(Operation::Upsert { document, if_match: None })
    }

    fn replace(
        &mut self,
        item: &ItemLink,
        body: &str,
        only_if: Option<&str>,
        _: IndexAction,
    ) -> Result<String, HostRefusal> {
        let id = self.id(item).map_err(refusal)?;
        let document = self.document(body).map_err(refused_document)?;
        let if_match = only_if.map(|etag| EtagMatch(etag.to_owned()));
        self.write(Operation::Replace { id, document, if_match })
    }

    fn delete(&mut self, item: &ItemLink, only_if: Option<&str>) -> Result<(), HostRefusal> {
        let id = self.id(item).map_err(refusal)?;
        let if_match = only_if.map(|etag| EtagMatch(etag.to_owned()));
        self.perform(Operation::Delete { id, if_match }).map_err(refusal)?;
        Ok(())
    }

    fn query(&mut self, question: &Question<'_>) -> Result<FeedPage, HostRefusal> {
        self.page(question).map_err(refusal)
    }
}

/// A query as JSON: its text and its parameters.
fn statement(text: &str) -> Result<(String, Value), ServiceError> {
    let invalid = || ServiceError::invalid("The query is not an object with a text as \"query\".");
    let value = json::parse(text.as_bytes())?;
    let query = value.get("query").and_then(Value::as_str).ok_or_else(invalid)?;
    let parameters = value.get("parameters").cloned().unwrap_or(Value::Null);
    Ok((query.to_owned(), parameters))
}

fn cursor(text: &str) -> Result<Cursor, ServiceError> {
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| ServiceError::bad_continuation())?;
    Cursor::from_bytes(&bytes).map_err(|_| ServiceError::bad_continuation())
}

fn refused_document(error: ServiceError) -> HostRefusal {
    if matches!(error, ServiceError::KeyMismatch) {
        return refusal(ServiceError::invalid(OTHER_KEY));
    }
    refusal(error)
}

/// What a script is told about an error.
fn refusal(error: ServiceError) -> HostRefusal {
    account::report(&error);
    HostRefusal { reason: reason(&error), message: error.to_string() }
}

fn reason(error: &ServiceError) -> HostReason {
    match error {
        ServiceError::NotFound | ServiceError::OwnerNotFound => HostReason::NotFound,
        ServiceError::Conflict { .. } => HostReason::Conflict,
        ServiceError::Precondition => HostReason::PreconditionFailed,
        ServiceError::TooLarge { .. } | ServiceError::ResponseTooLarge { .. } => {
            HostReason::TooLarge
        }
        ServiceError::KeyFull { .. }
        | ServiceError::Quota { .. }
        | ServiceError::Forbidden
        | ServiceError::NotPermitted
        | ServiceError::ControlPlane
        | ServiceError::NotInRole { .. } => HostReason::Forbidden,
        ServiceError::Internal { .. } | ServiceError::ClockBehind { .. } => HostReason::Internal,
        ServiceError::Busy
        | ServiceError::Stopping
        | ServiceError::OutOfMemory
        | ServiceError::DiskFull
        | ServiceError::TimedOut
        | ServiceError::ScriptsBusy
        | ServiceError::ScriptConflict
        | ServiceError::SessionNotAvailable
        | ServiceError::RangeGone { .. }
        | ServiceError::RangeSwitching { .. }
        | ServiceError::ContainerRecreated
        | ServiceError::Scaling
        | ServiceError::Unknown
        | ServiceError::Throttled { .. } => HostReason::RetryWith,
        ServiceError::Unauthorised
        | ServiceError::Invalid { .. }
        | ServiceError::Query { .. }
        | ServiceError::AcrossPartitions
        | ServiceError::NeedsMerge { .. }
        | ServiceError::KeyMismatch
        | ServiceError::KeyLacking
        | ServiceError::Dependency
        | ServiceError::NoSuchPosition { .. }
        | ServiceError::MergeUnaware
        | ServiceError::Batch { .. }
        | ServiceError::Script { .. } => HostReason::BadRequest,
    }
}
