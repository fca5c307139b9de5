//! Triggers: scripts before and after the write of one item, in its transaction.

use std::sync::Arc;

use bytes::Bytes;
use model::epk::Epk;
use model::json;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::system_properties::SystemProperties;
use partition::{Effect, EtagMatch, Operation};
use script::{ScriptCache, ScriptLimits, ScriptTask, Surroundings, TriggerOperation};

use super::host::ScriptHost;
use super::totals::ScriptMeter;
use super::transaction::{Place, Ran};
use super::{StoredScript, late_script, stamps};
use crate::catalogue::kind::Kind;
use crate::error::ServiceError;
use crate::pipeline::account;
use crate::pipeline::admission::AdmissionGuard;
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::ResolvedContainer;
use crate::request::{ItemAction, ItemOperation};
use crate::response::ItemResult;
use crate::service::Service;
use crate::verb::{ContainerVerb, ItemFacts};

/// Writes one item, with a trigger before or after it or both.
#[derive(Clone, Debug)]
pub struct TriggeredAction {
    pub action: ItemAction,
    /// Names of triggers.
    pub pre: Option<String>,
    pub post: Option<String>,
    /// The system properties that scripts see items with.
    pub system: Arc<SystemProperties>,
}

/// The result of a write with triggers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggeredResult {
    pub item: ItemResult,
    /// What the trigger after the write made of the answer, as JSON text.
    pub answer: Option<String>,
}

impl ContainerVerb for TriggeredAction {
    type Reply = TriggeredResult;

    fn facts(&self) -> ItemFacts<'_> {
        // Triggers reach all items of the key, so a permission for this one item is too little.
        ItemFacts { writes: true, item: None, ..self.action.facts() }
    }

    fn item_mut(&mut self) -> Option<(Option<&PartitionKey>, &mut ItemId)> {
        self.action.item_mut()
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<TriggeredResult, ServiceError> {
        service.write_with_triggers(container, self, meta).await
    }
}

/// The write that triggers belong to, before its body is final.
struct Write {
    operation: TriggerOperation,
    id: Option<ItemId>,
    body: Option<String>,
    if_match: Option<EtagMatch>,
}

impl Write {
    fn new(operation: ItemOperation) -> Result<Write, ServiceError> {
        use ItemOperation::{Create, Delete, Patch, Read, Replace, Unreadable, Upsert};
        let (operation, id, body, if_match) = match operation {
            Create { body } => (TriggerOperation::Create, None, Some(body), None),
            Upsert { body, if_match } => (TriggerOperation::Upsert, None, Some(body), if_match),
            Replace { id, body, if_match } => {
                (TriggerOperation::Replace, Some(id), Some(body), if_match)
            }
            Delete { id, if_match } => (TriggerOperation::Delete, Some(id), None, if_match),
            Patch { .. } | Read { .. } | Unreadable { .. } => {
                return Err(ServiceError::invalid("This operation cannot have triggers."));
            }
        };
        Ok(Write { operation, id, body: body.map(|body| text(&body)).transpose()?, if_match })
    }

    /// The operation with the body that the trigger before it left.
    fn finished(&self, host: &ScriptHost, body: Option<&str>) -> Result<Operation, ServiceError> {
        let if_match = self.if_match.clone();
        let Some(body) = body else {
            let id = self.id.clone().ok_or_else(|| ServiceError::invalid("There is no body."))?;
            return Ok(Operation::Delete { id, if_match });
        };
        let document = host.document(body)?;
        Ok(match (self.operation, self.id.clone()) {
            (TriggerOperation::Replace, Some(id)) => Operation::Replace { id, document, if_match },
            (TriggerOperation::Upsert, _) => Operation::Upsert { document, if_match },
            _ => Operation::Create { document },
        })
    }
}

/// A body as text, which has to be JSON before a script sees it.
fn text(body: &Bytes) -> Result<String, ServiceError> {
    json::parse(body)?;
    String::from_utf8(body.to_vec()).map_err(ServiceError::internal)
}

/// What a run needs, for each of its runs.
struct Triggered {
    write: Write,
    pre: Option<StoredScript>,
    post: Option<StoredScript>,
    scripts: Arc<ScriptCache>,
    surroundings: Surroundings,
    limits: ScriptLimits,
    meter: ScriptMeter,
}

/// A write that is not committed yet.
struct Written {
    effect: Effect,
    /// Its place among the writes of the transaction.
    at: usize,
    /// The answer, if a trigger changed it.
    answer: Option<String>,
}

impl Triggered {
    fn run(&self, host: ScriptHost) -> Ran<Written> {
        let (mut host, mut ticks) = (host, 0);
        let mut body = self.write.body.clone();
        if let Some(pre) = &self.pre {
            let operation = self.write.operation;
            let task = ScriptTask::PreTrigger { operation, body: body.as_deref() };
            let ran = self.run_script(pre, &task, host);
            (host, ticks) = (ran.host, ticks + ran.ticks);
            match ran.value {
                Ok((changed, _)) => body = changed.or(body),
                Err(error) => return Ran { host, value: Err(error), ticks },
            }
        }
        let written = self.write.finished(&host, body.as_deref());
        let at = host.writes();
        let effect = match written.and_then(|operation| host.perform(operation)) {
            Ok(effect) => effect,
            Err(error) => return Ran { host, value: Err(error), ticks },
        };
        let Some(post) = &self.post else {
            return Ran { host, value: Ok(Written { effect, at, answer: None }), ticks };
        };
        let shown = effect.text.is_some().then(|| host.shown(&effect));
        let (operation, body, answer) = (self.write.operation, body.as_deref(), shown.as_deref());
        let task = ScriptTask::PostTrigger { operation, body, answer };
        let Ran { host, value, ticks: more } = self.run_script(post, &task, host);
        let value = value.map(|(answer, _)| Written { effect, at, answer });
        Ran { host, value, ticks: ticks + more }
    }

    fn run_script(
        &self,
        script: &StoredScript,
        task: &ScriptTask<'_>,
        host: ScriptHost,
    ) -> Ran<(Option<String>, String)> {
        let run = |host| match self.scripts.get(&script.name, &script.text) {
            Ok(compiled) => {
                let ended = script::run(&compiled, task, &self.surroundings, self.limits, host);
                Ran::of(script, ended)
            }
            Err(fault) => Ran::failed(host, script.failed(fault, String::new())),
        };
        self.meter.measure(&script.name, host, run)
    }
}

impl Service {
    async fn write_with_triggers(
        &self,
        entry: &ResolvedContainer,
        request: TriggeredAction,
        meta: &mut ResponseMeta,
    ) -> Result<TriggeredResult, ServiceError> {
        let TriggeredAction { action: ItemAction { key, operation, session }, pre, post, system } =
            request;
        let (key, position) = self.locate_write(entry, key.as_ref(), &operation, meta)?;
        let write = Write::new(operation)?;
        let triggered = Triggered {
            pre: self.trigger(entry, pre, "Pre", write.operation).await?,
            post: self.trigger(entry, post, "Post", write.operation).await?,
            write,
            scripts: Arc::clone(&self.scripts),
            surroundings: self.surroundings(entry),
            limits: self.script_limits(),
            meter: self.script_meter(entry.rid, Kind::Trigger),
        };
        let guard = AdmissionGuard::admit(&*entry.route(&position)?, meta)?;
        let place = Place { entry, key, position, session: session.as_ref(), system };
        let done = self.run_triggered(&place, triggered, meta).await;
        guard.pay(Some(&place.position), meta);
        self.note_size(entry, meta);
        done
    }

    /// The key of a write, which is given or in its document.
    fn locate_write(
        &self,
        entry: &ResolvedContainer,
        key: Option<&PartitionKey>,
        operation: &ItemOperation,
        meta: &mut ResponseMeta,
    ) -> Result<(PartitionKey, Epk), ServiceError> {
        let definition = entry.key_definition();
        if let Some(key) = key {
            // What a trigger makes of the document decides whether that has the same key.
            return Ok((definition.meant(key).clone(), self.locate(entry, Some(key), None)?));
        }
        let (checked, position) = self.check_operation(entry, None, operation.clone(), meta)?;
        let key = match &checked {
            Operation::Create { document }
            | Operation::Upsert { document, .. }
            | Operation::Replace { document, .. } => definition.extract(document.json())?,
            Operation::Read { .. } | Operation::Delete { .. } | Operation::Patch { .. } => {
                PartitionKey::NONE
            }
        };
        Ok((key, position))
    }

    /// A trigger, if it is one of that type for that operation.
    async fn trigger(
        &self,
        entry: &ResolvedContainer,
        name: Option<String>,
        wanted: &str,
        operation: TriggerOperation,
    ) -> Result<Option<StoredScript>, ServiceError> {
        let Some(name) = name else { return Ok(None) };
        let found = self.find(Kind::Trigger, &entry.names.rid, &name).await?;
        let Some(stored) = found else {
            return Err(ServiceError::invalid(format!("Trigger '{name}' does not exist.")));
        };
        let property =
            |name: &str| stored.record.definition.get(name).and_then(|value| value.as_str());
        let own = property("triggerType").unwrap_or_default();
        if !own.eq_ignore_ascii_case(wanted) {
            return Err(ServiceError::invalid(format!(
                "Trigger '{name}' was defined with trigger type '{own}', and therefore is invalid \
                 for '{wanted}'."
            )));
        }
        let defined = property("triggerOperation").unwrap_or_default();
        if !is_for(defined, operation) {
            return Err(ServiceError::invalid(format!(
                "Trigger '{name}' was defined with operation type '{defined}', and therefore is \
                 invalid for '{}'.",
                operation.name()
            )));
        }
        Ok(Some(StoredScript::of(&stored.record)))
    }

    async fn run_triggered(
        &self,
        place: &Place<'_>,
        triggered: Triggered,
        meta: &mut ResponseMeta,
    ) -> Result<TriggeredResult, ServiceError> {
        let named = triggered.pre.clone().or(triggered.post.clone());
        let work = move |host: ScriptHost| triggered.run(host);
        let done = self.transact(place, Arc::new(work), meta).await;
        let done = done.map_err(|error| match &named {
            Some(script) => late_script(script, error),
            None => error,
        })?;
        let Written { effect, at, answer } = done.value;
        let real = done.effects.get(at);
        meta.item_lsn = real.map(|real| real.lsn);
        let item = ItemResult {
            kind: effect.kind,
            stamp: real.and_then(|real| real.stamp.clone()),
            text: effect.text,
            charge: account::charge(&effect.work),
        };
        let answer = match answer {
            Some(answer) => Some(stamps::corrected(&self.cluster, answer, &done.stamps).await?),
            None => None,
        };
        Ok(TriggeredResult { item, answer })
    }
}

/// Whether a trigger that was defined for that operation runs with this one. `Update` is
/// the old word for replacing.
fn is_for(defined: &str, operation: TriggerOperation) -> bool {
    let is = |word: &str| defined.eq_ignore_ascii_case(word);
    is("All")
        || is(operation.name())
        || matches!(operation, TriggerOperation::Replace) && is("Update")
}
