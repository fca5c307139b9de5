//! Stored procedures and triggers: JavaScript as one transaction on one logical partition;
//! and functions in queries (`functions.rs`).
//!
//! The crate `script` runs the code, `cluster` has the threads, `partition` tries operations
//! on a snapshot and applies them as one command. Here they come together: `host.rs` is what
//! a script can reach, `transaction.rs` runs it and commits.

pub(crate) mod functions;
mod host;
mod stamps;
pub(crate) mod texts;
pub(crate) mod totals;
mod transaction;
pub(crate) mod triggers;

use std::sync::Arc;

use bytes::Bytes;
use model::charge::Work;
use model::partition_key::PartitionKey;
use model::session::SessionToken;
use model::system_properties::SystemProperties;
use script::{ContainerLinks, Fault, ScriptTask, Surroundings};

use crate::catalogue::Record;
use crate::catalogue::kind::Kind;
use crate::error::ServiceError;
use crate::identity::roles::DataAction;
use crate::pipeline::admission::AdmissionGuard;
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::ResolvedContainer;
use crate::service::Service;
use crate::verb::{ContainerVerb, ItemFacts, Reach};
use host::ScriptHost;
use transaction::{Place, Ran};

/// Runs a stored procedure.
#[derive(Clone, Debug)]
pub struct ExecuteProcedure {
    /// Its name, or its resource id.
    pub name: String,
    pub key: Option<PartitionKey>,
    /// A JSON array, or nothing.
    pub arguments: Bytes,
    /// What the client has seen already: refused where less is known.
    pub session: Option<SessionToken>,
    /// The system properties that the script sees items with.
    pub system: Arc<SystemProperties>,
}

/// What a stored procedure returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcedureResult {
    /// JSON text; none for undefined.
    pub body: Option<String>,
    /// What it printed.
    pub log: String,
}

impl ContainerVerb for ExecuteProcedure {
    type Reply = ProcedureResult;

    fn facts(&self) -> ItemFacts<'_> {
        let procedure = Some(self.name.as_str());
        let facts = ItemFacts { procedure, ..ItemFacts::writing(Reach::of(self.key.as_ref())) };
        facts.allowed_by(DataAction::ExecuteProcedure)
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<ProcedureResult, ServiceError> {
        service.execute_procedure(container, self, meta).await
    }
}

/// A script as its container has it.
#[derive(Clone, Debug)]
pub(crate) struct StoredScript {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl StoredScript {
    pub(crate) fn of(record: &Record) -> StoredScript {
        let text = record.definition.get("body").and_then(|body| body.as_str());
        StoredScript { name: record.name().to_owned(), text: text.unwrap_or_default().to_owned() }
    }

    pub(crate) fn failed(&self, fault: Fault, log: String) -> ServiceError {
        ServiceError::Script { script: self.name.clone(), fault: Box::new(fault), log }
    }
}

impl Service {
    async fn execute_procedure(
        &self,
        entry: &ResolvedContainer,
        request: ExecuteProcedure,
        meta: &mut ResponseMeta,
    ) -> Result<ProcedureResult, ServiceError> {
        let ExecuteProcedure { name, key, arguments, session, system } = request;
        let position = self.locate(entry, key.as_ref(), None);
        let position = meta.paid_if_refused(position, Work::Probe)?;
        let stored = self.find(Kind::StoredProcedure, &entry.names.rid, &name).await;
        let stored = stored?.ok_or(ServiceError::NotFound);
        let script = StoredScript::of(&meta.paid_if_refused(stored, Work::Probe)?.record);
        let guard = AdmissionGuard::admit(&*entry.route(&position)?, meta)?;
        let key = key.map_or(PartitionKey::NONE, |key| entry.key_definition().meant(&key).clone());
        let place = Place { entry, key, position, session: session.as_ref(), system };
        let done = self.run_procedure(&place, script, arguments, meta).await;
        guard.pay(Some(&place.position), meta);
        self.note_size(entry, meta);
        done
    }

    async fn run_procedure(
        &self,
        place: &Place<'_>,
        script: StoredScript,
        arguments: Bytes,
        meta: &mut ResponseMeta,
    ) -> Result<ProcedureResult, ServiceError> {
        let Ok(arguments) = String::from_utf8(arguments.into()) else {
            return Err(
                script.failed(Fault::Arguments { problem: "they are not UTF-8" }, String::new())
            );
        };
        let (runner, limits) = (Arc::clone(&self.scripts), self.script_limits());
        let (surroundings, late) = (self.surroundings(place.entry), script.clone());
        let meter = self.script_meter(place.entry.rid, Kind::StoredProcedure);
        let run = move |host: ScriptHost| {
            let compiled = match runner.get(&script.name, &script.text) {
                Ok(compiled) => compiled,
                Err(fault) => return Ran::failed(host, script.failed(fault, String::new())),
            };
            let task = ScriptTask::Procedure { arguments: &arguments };
            let ended = script::run(&compiled, &task, &surroundings, limits, host);
            Ran::of(&script, ended)
        };
        let name = late.name.clone();
        let work = move |host: ScriptHost| meter.measure(&name, host, &run);
        let done = self.transact(place, Arc::new(work), meta).await;
        let done = done.map_err(|error| late_script(&late, error))?;
        let (body, log) = done.value;
        let shown = |text: String| stamps::corrected(&self.cluster, text, &done.stamps);
        let body = match body {
            Some(body) => Some(shown(body).await?),
            None => None,
        };
        Ok(ProcedureResult { body, log: shown(log).await? })
    }

    fn surroundings(&self, entry: &ResolvedContainer) -> Surroundings {
        const KB: u64 = 1024;
        let (database, container) = (entry.rid.database(), entry.rid);
        let links = ContainerLinks {
            of_rids: format!("dbs/{database}/colls/{container}/"),
            of_names: entry.names.link.to_string(),
        };
        let item = self.limits.item_bytes_max / KB;
        let quota_max =
            format!("documentSize={item};documentsSize=-1;documentsCount=-1;collectionSize=-1;");
        Surroundings { links, quota_max, quota_usage: String::new() }
    }
}

/// A script that did not end is one that ran for too long.
fn late_script(script: &StoredScript, error: ServiceError) -> ServiceError {
    if matches!(error, ServiceError::TimedOut) {
        return script.failed(Fault::OutOfTime, String::new());
    }
    error
}

#[cfg(test)]
mod tests;
