//! Scripts: `/_orrery/scripts`, `/_orrery/script`, `/_orrery/scripts/delete` and
//! `/_orrery/scripts/run`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use service::{
    EffectKind, Fault, Kind, Operator, PartitionKey, ProcedureCall, ScriptDefinition, ScriptInfo,
    ScriptTotals, ServiceError, TriggerDefinition,
};

use crate::error::OperatorError;
use crate::request::{container, link, parameter, parse};

/// A kind of script, as operators write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScriptKind {
    #[default]
    Procedure,
    Trigger,
    Function,
}

/// A script to be stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ScriptUpload {
    pub kind: ScriptKind,
    pub name: String,
    /// JavaScript.
    pub body: String,
    /// Of a trigger: `Pre` or `Post`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_type: Option<String>,
    /// Of a trigger: `All`, or the name of an operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_operation: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Store {
    container: String,
    script: ScriptUpload,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Delete {
    container: String,
    #[serde(default)]
    kind: ScriptKind,
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    container: String,
    name: String,
    /// A partition key as clients write it: a list of values.
    #[serde(default)]
    key: Option<Value>,
    #[serde(default)]
    arguments: Vec<Value>,
}

impl ScriptKind {
    fn kind(self) -> Kind {
        match self {
            ScriptKind::Procedure => Kind::StoredProcedure,
            ScriptKind::Trigger => Kind::Trigger,
            ScriptKind::Function => Kind::UserDefinedFunction,
        }
    }
}

/// The word for a kind of script. The catalogue has others, which are none.
pub(crate) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::StoredProcedure => "procedure",
        Kind::Trigger => "trigger",
        Kind::UserDefinedFunction => "function",
        Kind::Database
        | Kind::Container
        | Kind::User
        | Kind::Permission
        | Kind::ClientEncryptionKey
        | Kind::Offer => "none",
    }
}

/// The scripts of the container that the query names, without their texts.
pub(crate) async fn list(operator: Operator<'_>, query: &str) -> Result<Value, OperatorError> {
    let container = container(query)?;
    let scripts = operator.scripts(&link(&container)?).await?;
    let scripts: Vec<Value> = scripts.iter().map(described).collect();
    Ok(json!({ "container": container, "scripts": scripts }))
}

/// One script with its text.
pub(crate) async fn show(operator: Operator<'_>, query: &str) -> Result<Value, OperatorError> {
    let container = container(query)?;
    let name = parameter(query, "name")
        .ok_or_else(|| OperatorError::malformed("Name a script: &kind=procedure&name=NAME"))?;
    let kind = match parameter(query, "kind") {
        None => ScriptKind::default(),
        Some(word) => serde_json::from_value(json!(word)).map_err(|_| {
            OperatorError::malformed(format!("'{word}' is not procedure, trigger or function"))
        })?,
    };
    let info = operator.script(&link(&container)?, kind.kind(), &name).await?;
    let mut body = described(&info);
    body["body"] = json!(info.definition.text);
    Ok(body)
}

/// Checks a script and stores it.
pub(crate) async fn store(operator: Operator<'_>, body: &Bytes) -> Result<Value, OperatorError> {
    const EXAMPLE: &str = r#"{"container":"dbs/D/colls/C","script":{"kind":"procedure","name":"N","body":"function () {}"}}"#;
    let Store { container, script } = parse(body, EXAMPLE)?;
    let ScriptUpload { kind, name, body, trigger_type, trigger_operation } = script;
    let trigger = trigger_type.zip(trigger_operation);
    let trigger = trigger.map(|(time, operation)| TriggerDefinition { time, operation });
    let definition = ScriptDefinition { kind: kind.kind(), name, text: body, trigger };
    let stored = operator.store_script(&link(&container)?, &definition).await?;
    let created = stored == EffectKind::Created;
    Ok(json!({ "kind": kind, "name": definition.name, "created": created }))
}

pub(crate) async fn delete(operator: Operator<'_>, body: &Bytes) -> Result<Value, OperatorError> {
    const EXAMPLE: &str = r#"{"container":"dbs/D/colls/C","kind":"procedure","name":"N"}"#;
    let Delete { container, kind, name } = parse(body, EXAMPLE)?;
    operator.delete_script(&link(&container)?, kind.kind(), &name).await?;
    Ok(json!({ "kind": kind, "name": name }))
}

/// Runs a procedure. A script that fails is an answer, too: with what it printed and cost.
pub(crate) async fn run(operator: Operator<'_>, body: &Bytes) -> Result<Value, OperatorError> {
    const EXAMPLE: &str = r#"{"container":"dbs/D/colls/C","name":"N","key":["a"],"arguments":[1]}"#;
    let Run { container, name, key, arguments } = parse(body, EXAMPLE)?;
    let key = key.map(|key| {
        let parsed = PartitionKey::parse_json(&key.to_string());
        parsed.map_err(|_| OperatorError::malformed(format!("{key} is not a partition key")))
    });
    let arguments = Value::from(arguments).to_string().into();
    let call = ProcedureCall { name, key: key.transpose()?, arguments };
    let failure = match operator.run_procedure(&link(&container)?, call).await {
        Ok(done) => {
            let result = done.reply.body.map(|body| serde_json::from_str(&body));
            let result: Value = result.transpose().unwrap_or_default().unwrap_or_default();
            return Ok(json!({
                "result": result,
                "log": done.reply.log,
                "requestUnits": done.meta.charge.request_units(),
            }));
        }
        Err(failure) => failure,
    };
    let charge = failure.meta.charge.request_units();
    if let ServiceError::Script { fault, log, .. } = &failure.error {
        return Ok(json!({ "failed": failed(fault), "log": log, "requestUnits": charge }));
    }
    Err(ServiceError::from(failure).into())
}

/// What is wrong with a script, and where.
pub(crate) fn failed(fault: &Fault) -> Value {
    let message = match fault {
        Fault::Syntax { message, .. } => format!("SyntaxError: {message}"),
        Fault::Thrown(thrown) | Fault::Aborted(thrown) => thrown.text(),
        Fault::NotAFunction
        | Fault::SourceTooLarge { .. }
        | Fault::Arguments { .. }
        | Fault::OutOfTime
        | Fault::OutOfSteps
        | Fault::OutOfMemory
        | Fault::StackOverflow
        | Fault::ResultTooLarge { .. }
        | Fault::Unsettled => fault.to_string(),
    };
    let mut failed = json!({ "message": message });
    if let Some(position) = fault.position() {
        failed["line"] = json!(position.line);
        failed["column"] = json!(position.column);
    }
    failed
}

fn described(ScriptInfo { definition, totals }: &ScriptInfo) -> Value {
    let ScriptDefinition { kind, name, text, trigger } = definition;
    let ScriptTotals { runs, failures, charge, time } = totals;
    let mut body = json!({
        "kind": word(*kind),
        "name": name,
        "bytes": text.len(),
        "runs": runs,
        "failures": failures,
        "requestUnits": charge.request_units(),
        "seconds": time.as_secs_f64(),
    });
    if let Some(TriggerDefinition { time, operation }) = trigger {
        body["triggerType"] = json!(time);
        body["triggerOperation"] = json!(operation);
    }
    body
}
