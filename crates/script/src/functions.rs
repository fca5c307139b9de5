//! User-defined functions, which a query calls for many documents.
//!
//! A function keeps its isolate from call to call, because making one takes longer than most
//! calls. So what it leaves in its globals is there for its next call, in the same query and
//! for the same tenant: a query has its own functions, and they go with it. Functions know
//! neither documents nor messages, only their arguments, as in the service.

use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Function, Persistent, Promise, Value};

use crate::fault::Fault;
use crate::host::Environment;
use crate::isolate::{Failure, Isolate, ScriptUsage, entry};
use crate::limits::ScriptLimits;
use crate::run::{parse_arguments, result};
use crate::script::{ENTRY, Script};

/// A function that is ready to be called. Its limits hold for all calls together.
pub struct StoredFunction<E: Environment + 'static> {
    script: Script,
    /// Writes a value as JSON. It belongs to the engine and so goes before it.
    write: Persistent<Function<'static>>,
    isolate: Isolate<E>,
    calls: u64,
}

impl<E: Environment + 'static> std::fmt::Debug for StoredFunction<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredFunction")
            .field("name", &self.script.name())
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

impl<E: Environment + 'static> StoredFunction<E> {
    /// Makes an isolate and runs the script's text in it, which defines the function.
    pub fn new(script: &Script, limits: ScriptLimits, environment: E) -> Result<Self, Fault> {
        let isolate = Isolate::new(limits, environment).map_err(|(fault, _)| fault)?;
        let write = isolate.run(script, |ctx| {
            let write = Persistent::save(ctx, isolate.prepare(ctx)?);
            entry(ctx, script)?;
            Ok(write)
        })?;
        Ok(StoredFunction { script: script.clone(), write, isolate, calls: 0 })
    }

    /// Calls the function with a JSON array of arguments; `None` is undefined.
    pub fn call(&mut self, arguments: &str) -> Result<Option<String>, Fault> {
        self.calls += 1;
        let StoredFunction { script, isolate, write, .. } = self;
        isolate.run(script, |ctx| {
            let arguments = parse_arguments(ctx, arguments)?;
            let function: Function<'_> =
                ctx.globals().get(ENTRY).map_err(|_| Fault::NotAFunction)?;
            let value: Value<'_> = function.call_arg(arguments)?;
            let value = match value.as_promise() {
                Some(promise) => settled(ctx, isolate, promise)?,
                None => value,
            };
            if let Some(fault) = isolate.unhandled(ctx, script) {
                return Err(fault.into());
            }
            let write = write.clone().restore(ctx)?;
            result(write.call((value,))?, isolate.limits().result_bytes_max)
        })
    }

    /// Calls so far, whatever they gave: each is charged.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    #[must_use]
    pub fn usage(&self) -> ScriptUsage {
        self.isolate.state().borrow().usage
    }
}

/// The value of an async function, if nothing outside is needed to settle it.
fn settled<'js, E: Environment + 'static>(
    ctx: &Ctx<'js>,
    isolate: &Isolate<E>,
    promise: &Promise<'js>,
) -> Result<Value<'js>, Failure> {
    isolate.run_jobs(ctx)?;
    if promise.state() == PromiseState::Rejected {
        isolate.forget_rejections();
    }
    let value = promise.result().ok_or(Failure::Fault(Fault::Unsettled))?;
    Ok(value?)
}
