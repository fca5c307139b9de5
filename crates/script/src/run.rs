//! Procedures and triggers: one isolate each, from the arguments to the result.
//!
//! First the script's own function runs to its end, then the operations that it queued, one
//! by one with their callbacks, with promises in between, until nothing is left to do. Only
//! then is the result read. A fault at any point means that there is none.

use rquickjs::function::Args;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Object, Value};

use crate::calls;
use crate::fault::Fault;
use crate::host::{ContainerLinks, Host};
use crate::isolate::{Failure, Isolate, ScriptUsage, entry};
use crate::limits::{ARGUMENTS_BYTES_MAX, ARGUMENTS_MAX, PAGE_ITEMS_DEFAULT, ScriptLimits};
use crate::prelude::CONTEXT;
use crate::script::Script;

/// What a script is run for, with the messages that it may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptTask<'a> {
    /// A procedure with its arguments: a JSON array, or nothing.
    Procedure { arguments: &'a str },
    /// A trigger before a write, which may change the body.
    PreTrigger { operation: TriggerOperation, body: Option<&'a str> },
    /// A trigger after a write, which may change the answer.
    PostTrigger { operation: TriggerOperation, body: Option<&'a str>, answer: Option<&'a str> },
}

/// The write that a trigger belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerOperation {
    Create,
    Replace,
    Upsert,
    Delete,
}

impl TriggerOperation {
    /// As scripts know it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TriggerOperation::Create => "Create",
            TriggerOperation::Replace => "Replace",
            TriggerOperation::Upsert => "Upsert",
            TriggerOperation::Delete => "Delete",
        }
    }
}

/// What a script may know of its container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    pub links: ContainerLinks,
    /// What the container may hold and does hold, in the protocol's words.
    pub quota_max: String,
    pub quota_usage: String,
}

/// What is left when a script has ended, in whichever way.
#[derive(Debug)]
pub struct Ended<H> {
    /// The body that the script gave to its response, or in a trigger before a write to the
    /// request: JSON text, or `None` for undefined and for what a trigger did not set.
    pub result: Result<Option<String>, Fault>,
    /// What `console.log` printed.
    pub log: String,
    pub usage: ScriptUsage,
    /// The host, with what the script staged. That is worth nothing after a fault.
    pub host: H,
}

/// Runs a script to its end.
pub fn run<H: Host + 'static>(
    script: &Script,
    task: &ScriptTask<'_>,
    surroundings: &Surroundings,
    limits: ScriptLimits,
    host: H,
) -> Ended<H> {
    let isolate = match Isolate::new(limits, host) {
        Ok(isolate) => isolate,
        Err((fault, host)) => {
            let (log, usage) = (String::new(), ScriptUsage::default());
            return Ended { result: Err(fault), log, usage, host };
        }
    };
    let result = isolate.run(script, |ctx| perform(ctx, &isolate, script, task, surroundings));
    let (host, usage, log) = isolate.finish();
    Ended { result, log, usage, host }
}

fn perform<'js, H: Host + 'static>(
    ctx: &Ctx<'js>,
    isolate: &Isolate<H>,
    script: &Script,
    task: &ScriptTask<'_>,
    surroundings: &Surroundings,
) -> Result<Option<String>, Failure> {
    let limits = isolate.limits();
    isolate.prepare(ctx)?;
    let native = calls::operations(ctx, isolate.state(), &surroundings.links, script.file())?;
    let context: Function<'js> = CONTEXT.code()?.evaluate(ctx)?.get()?;
    let session: Object<'js> = context.call((native, facts(ctx, task, surroundings, &limits)?))?;
    let arguments = arguments(ctx, task)?;
    let main = entry(ctx, script)?;
    let returned: Value<'js> = main.call_arg(arguments)?;
    let step: Function<'js> = session.get("step")?;
    isolate.run_jobs(ctx)?;
    while step.call::<_, bool>(())? {
        isolate.run_jobs(ctx)?;
    }
    if let Some(fault) = isolate.unhandled(ctx, script) {
        return Err(fault.into());
    }
    let is_waiting = |promise: &rquickjs::Promise<'js>| promise.state() == PromiseState::Pending;
    if returned.as_promise().is_some_and(is_waiting) {
        return Err(Fault::Unsettled.into());
    }
    let side = if matches!(task, ScriptTask::PreTrigger { .. }) { "request" } else { "response" };
    let body: Function<'js> = session.get(side)?;
    result(body.call(())?, limits.result_bytes_max)
}

/// Text of bounded size, out of what our JavaScript made of a value.
pub(crate) fn result(
    json: Option<rquickjs::String<'_>>,
    bytes_max: usize,
) -> Result<Option<String>, Failure> {
    let Some(json) = json else { return Ok(None) };
    let json = json.to_string()?;
    if json.len() > bytes_max {
        return Err(Fault::ResultTooLarge { bytes: json.len(), bytes_max }.into());
    }
    Ok(Some(json))
}

/// A text of JSON as arguments of a call.
pub(crate) fn parse_arguments<'js>(ctx: &Ctx<'js>, text: &str) -> Result<Args<'js>, Failure> {
    let refuse = |problem| Failure::Fault(Fault::Arguments { problem });
    if text.len() > ARGUMENTS_BYTES_MAX {
        return Err(refuse("they are too large"));
    }
    if text.trim().is_empty() {
        return Ok(Args::new(ctx.clone(), 0));
    }
    let parsed = ctx.json_parse(text).map_err(|error| {
        let fault = crate::describe::fault(ctx, &error, "");
        if fault == Fault::OutOfMemory { fault.into() } else { refuse("they are not JSON") }
    })?;
    let Some(list) = parsed.as_array() else { return Err(refuse("they are not an array")) };
    if list.len() > ARGUMENTS_MAX {
        return Err(refuse("they are too many"));
    }
    let mut arguments = Args::new(ctx.clone(), list.len());
    for value in list.iter::<Value<'js>>() {
        arguments.push_arg(value?)?;
    }
    Ok(arguments)
}

fn arguments<'js>(ctx: &Ctx<'js>, task: &ScriptTask<'_>) -> Result<Args<'js>, Failure> {
    match task {
        ScriptTask::Procedure { arguments } => parse_arguments(ctx, arguments),
        ScriptTask::PreTrigger { .. } | ScriptTask::PostTrigger { .. } => {
            Ok(Args::new(ctx.clone(), 0))
        }
    }
}

/// What `context.js` is told about the run.
fn facts<'js>(
    ctx: &Ctx<'js>,
    task: &ScriptTask<'_>,
    surroundings: &Surroundings,
    limits: &ScriptLimits,
) -> Result<Object<'js>, Failure> {
    let facts = Object::new(ctx.clone())?;
    facts.set("selfLink", surroundings.links.of_rids.as_str())?;
    facts.set("altLink", surroundings.links.of_names.as_str())?;
    facts.set("pageDefault", PAGE_ITEMS_DEFAULT)?;
    facts.set("resultMax", u32::try_from(limits.result_bytes_max).unwrap_or(u32::MAX))?;
    let response = |answer: Option<Value<'js>>, operation: &str| -> Result<_, Failure> {
        let response = message(ctx, answer, operation)?;
        response.set("MaxResourceQuota", surroundings.quota_max.as_str())?;
        response.set("CurrentResourceQuotaUsage", surroundings.quota_usage.as_str())?;
        Ok(response)
    };
    match task {
        ScriptTask::Procedure { .. } => {
            facts.set("kind", "procedure")?;
            facts.set("request", message(ctx, None, "Execute")?)?;
            // An empty text, so that appending to it makes a text of anything.
            let empty = rquickjs::String::from_str(ctx.clone(), "")?.into_value();
            facts.set("response", response(Some(empty), "Execute")?)?;
        }
        ScriptTask::PreTrigger { operation, body } => {
            facts.set("kind", "pre")?;
            facts.set("request", message(ctx, parsed(ctx, *body)?, operation.name())?)?;
        }
        ScriptTask::PostTrigger { operation, body, answer } => {
            facts.set("kind", "post")?;
            facts.set("request", message(ctx, parsed(ctx, *body)?, operation.name())?)?;
            facts.set("response", response(parsed(ctx, *answer)?, operation.name())?)?;
        }
    }
    Ok(facts)
}

fn message<'js>(
    ctx: &Ctx<'js>,
    body: Option<Value<'js>>,
    operation: &str,
) -> Result<Object<'js>, Failure> {
    let message = Object::new(ctx.clone())?;
    message.set("Body", body.unwrap_or_else(|| Value::new_undefined(ctx.clone())))?;
    message.set("OperationType", operation)?;
    Ok(message)
}

fn parsed<'js>(ctx: &Ctx<'js>, json: Option<&str>) -> Result<Option<Value<'js>>, Failure> {
    Ok(json.map(|json| ctx.json_parse(json)).transpose()?)
}
