//! The scripts of a container: listed with what they have done, checked and stored, run.

use std::sync::Arc;

use bytes::Bytes;
use cluster::{Caller, Turn};
use model::json::Object;
use model::partition_key::PartitionKey;
use model::rid::ContainerRid;
use model::system_properties::SystemProperties;
use partition::EffectKind;

use crate::catalogue::Stored;
use crate::catalogue::kind::{Kind, Link};
use crate::error::ServiceError;
use crate::operator::Operator;
use crate::pipeline::resolve::ResolvedContainer;
use crate::request::{Conditions, InContainer, Request, ResourceAction};
use crate::response::{Failure, Response};
use crate::scripts::totals::{CountedScript, ScriptTotals};
use crate::scripts::{ExecuteProcedure, ProcedureResult, StoredScript};
use crate::verb::Verb;

/// The kinds that scripts have.
const KINDS: [Kind; 3] = [Kind::StoredProcedure, Kind::Trigger, Kind::UserDefinedFunction];

/// A script as its container has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptDefinition {
    pub kind: Kind,
    pub name: String,
    pub text: String,
    /// Of a trigger: when it runs, and with which operation.
    pub trigger: Option<TriggerDefinition>,
}

/// `Pre` or `Post`, and the name of an operation or `All`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerDefinition {
    pub time: String,
    pub operation: String,
}

/// A script and what it has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptInfo {
    pub definition: ScriptDefinition,
    pub totals: ScriptTotals,
}

/// A procedure to run.
#[derive(Clone, Debug)]
pub struct ProcedureCall {
    pub name: String,
    pub key: Option<PartitionKey>,
    /// A JSON array.
    pub arguments: Bytes,
}

impl ScriptDefinition {
    fn of(stored: &Stored) -> ScriptDefinition {
        let StoredScript { name, text } = StoredScript::of(&stored.record);
        let property = |name: &str| {
            let value = stored.record.definition.get(name)?;
            Some(value.as_str()?.to_owned())
        };
        let trigger = property("triggerType").zip(property("triggerOperation"));
        let trigger = trigger.map(|(time, operation)| TriggerDefinition { time, operation });
        ScriptDefinition { kind: stored.record.kind, name, text, trigger }
    }

    fn body(&self) -> Object {
        let mut body =
            Object::from_iter([("id", self.name.as_str()), ("body", self.text.as_str())]);
        if let Some(TriggerDefinition { time, operation }) = &self.trigger {
            body.insert("triggerType", time.as_str());
            body.insert("triggerOperation", operation.as_str());
        }
        body
    }
}

impl Operator<'_> {
    /// All scripts of a container, kind by kind, in the order of their names.
    pub async fn scripts(&self, container: &Link) -> Result<Vec<ScriptInfo>, ServiceError> {
        let service = self.service;
        self.run(async {
            let entry = ResolvedContainer::from(service.container(container)?);
            let mut scripts = Vec::new();
            for kind in KINDS {
                let pick = |stored: Stored| Ok(Some(ScriptDefinition::of(&stored)));
                let found = service.select_records(kind, &entry.names.rid, pick).await?;
                scripts.extend(found.into_iter().map(|it| self.with_totals(entry.rid, it)));
            }
            Ok(scripts)
        })
        .await
    }

    /// One of them.
    pub async fn script(
        &self,
        container: &Link,
        kind: Kind,
        name: &str,
    ) -> Result<ScriptInfo, ServiceError> {
        let service = self.service;
        self.run(async {
            let entry = ResolvedContainer::from(service.container(container)?);
            let stored = service.find(kind, &entry.names.rid, name).await?;
            let stored = stored.ok_or(ServiceError::NotFound)?;
            Ok(self.with_totals(entry.rid, ScriptDefinition::of(&stored)))
        })
        .await
    }

    /// Creates a script or replaces the one of that name, if it can be compiled: clients
    /// would only notice when they run it.
    pub async fn store_script(
        &self,
        container: &Link,
        script: &ScriptDefinition,
    ) -> Result<EffectKind, ServiceError> {
        let service = self.service;
        let stored = StoredScript { name: script.name.clone(), text: script.text.clone() };
        let cache = Arc::clone(&service.scripts);
        let check = async {
            let compile = move |_: &Turn| match cache.get(&stored.name, &stored.text) {
                Ok(_) => Ok(()),
                Err(fault) => Err(stored.failed(fault, String::new())),
            };
            service.read_records(compile).await
        };
        self.run(check).await?;
        let (parent, kind, body) = (container.clone(), script.kind, script.body().into());
        let stored = self.execute(ResourceAction::Upsert { parent, kind, body }).await?;
        Ok(stored.reply.kind)
    }

    pub async fn delete_script(
        &self,
        container: &Link,
        kind: Kind,
        name: &str,
    ) -> Result<(), ServiceError> {
        let link = container.clone().child(kind, name).ok_or(ServiceError::NotFound)?;
        let conditions = Conditions::default();
        self.execute(ResourceAction::Delete { link, conditions }).await?;
        Ok(())
    }

    /// Runs a stored procedure as a client would. The charge is in the answer, and in the
    /// failure.
    pub async fn run_procedure(
        &self,
        container: &Link,
        call: ProcedureCall,
    ) -> Result<Response<ProcedureResult>, Failure> {
        let ProcedureCall { name, key, arguments } = call;
        let system = Arc::new(SystemProperties::indexed());
        let procedure = ExecuteProcedure { name, key, arguments, session: None, system };
        self.execute(InContainer::new(container.clone(), procedure)).await
    }

    /// What the scripts of all containers have done.
    pub fn counted_scripts(&self) -> Result<Vec<CountedScript>, ServiceError> {
        self.run_blocking(|service| Ok(service.counted_scripts()))
    }

    async fn execute<V: Verb>(&self, verb: V) -> Result<Response<V::Reply>, Failure> {
        let (principal, caller) = (self.principal.clone(), Caller::default());
        self.service.execute(Request { principal, caller, verb }).await
    }

    fn with_totals(&self, container: ContainerRid, definition: ScriptDefinition) -> ScriptInfo {
        let ScriptDefinition { kind, name, .. } = &definition;
        let totals = self.service.totals_of_script(container, *kind, name);
        ScriptInfo { definition, totals }
    }
}
