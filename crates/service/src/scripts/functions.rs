//! User-defined functions of a container, for the queries that call them.
//!
//! Isolates are bound to a thread and a query may run on several, so they live on a thread
//! of their own, from the first call of a page to its end. A function's text is read from
//! the catalogue when a query that names it is bound.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cluster::{ClusterError, FunctionThread, FunctionThreads, ScriptTurn, SystemItems};
use model::charge::Work;
use model::json::{self, Value};
use query::{UserFunctionError, UserFunctions};
use runtime::Runtime;
use script::{Environment, Fault, ScriptCache, ScriptLimits, StoredFunction};

use super::totals::ScriptMeter;
use super::{StoredScript, texts};
use crate::catalogue::kind::Kind;
use crate::catalogue::{Stored, item_id};
use crate::error::ServiceError;
use crate::pipeline::resolve::ResolvedContainer;
use crate::service::{Service, id_of};

/// Calls of functions have this word in front. A text without it has none.
const PREFIX: &str = "udf";

/// Whether a query may call functions.
pub(crate) fn mentions_functions(text: &str) -> bool {
    let prefix = PREFIX.as_bytes();
    text.as_bytes().windows(prefix.len()).any(|part| part.eq_ignore_ascii_case(prefix))
}

/// The functions of a container, as they are when a page begins.
pub(crate) struct ContainerFunctions {
    items: SystemItems,
    parent_rid: String,
    threads: FunctionThreads,
    scripts: Arc<ScriptCache>,
    limits: ScriptLimits,
    runtime: Runtime,
    meter: ScriptMeter,
    /// Those that were looked up.
    found: Mutex<BTreeMap<String, Option<StoredScript>>>,
    thread: OnceLock<FunctionThread<Call, Answer>>,
    calls: AtomicU64,
    ticks: AtomicU64,
}

struct Call {
    script: StoredScript,
    arguments: String,
}

struct Answer {
    /// JSON text; none for undefined.
    value: Result<Option<String>, Fault>,
    /// What the function has used so far, for all its calls.
    ticks: u64,
}

impl Service {
    /// The functions that a query on a container may call.
    pub(crate) fn functions(
        &self,
        entry: &ResolvedContainer,
    ) -> Result<Arc<ContainerFunctions>, ServiceError> {
        Ok(Arc::new(ContainerFunctions {
            items: self.cluster.system_items()?,
            parent_rid: entry.names.rid.to_string(),
            threads: self.cluster.function_threads(),
            scripts: Arc::clone(&self.scripts),
            limits: self.script_limits(),
            runtime: self.runtime.clone(),
            meter: self.script_meter(entry.rid, Kind::UserDefinedFunction),
            found: Mutex::default(),
            thread: OnceLock::new(),
            calls: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
        }))
    }
}

impl ContainerFunctions {
    /// What the calls so far are charged for.
    pub(crate) fn work(&self) -> Work {
        let (calls, ticks) = (&self.calls, &self.ticks);
        Work::Calls { calls: calls.load(Ordering::Relaxed), ticks: ticks.load(Ordering::Relaxed) }
    }

    fn find(&self, name: &str) -> Option<StoredScript> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = found.get(name) {
            return known.clone();
        }
        let script = self.read(name);
        found.insert(name.to_owned(), script.clone());
        script
    }

    /// Only on a thread that may wait, as those of queries.
    fn read(&self, name: &str) -> Option<StoredScript> {
        let kind = Kind::UserDefinedFunction;
        let id = item_id(kind, &self.parent_rid, name);
        let (items, _) = self.items.list(&id, None, 1).ok()?;
        let item = items.into_iter().find(|item| id_of(item) == id)?;
        let stored = Stored::read(kind, &self.parent_rid, &item).ok()?;
        Some(StoredScript::of(&stored.record))
    }

    fn engage(&self) -> FunctionThread<Call, Answer> {
        let (scripts, limits, runtime) =
            (Arc::clone(&self.scripts), self.limits, self.runtime.clone());
        let meter = self.meter.clone();
        self.threads.engage(move |turn| {
            let turn = Arc::clone(turn);
            let (mut functions, mut ticks) = (BTreeMap::new(), 0);
            move |call: Call| {
                let environment =
                    FunctionEnvironment { runtime: runtime.clone(), turn: Arc::clone(&turn) };
                let name = call.script.name.clone();
                let call = || answer(&mut functions, &scripts, (limits, environment), call);
                let told = |it: &Answer| (it.value.is_err(), it.ticks.saturating_sub(ticks));
                let answer = meter.measure_call(&name, call, told);
                ticks = answer.ticks;
                answer
            }
        })
    }
}

type Functions = BTreeMap<String, StoredFunction<FunctionEnvironment>>;

/// Calls a function, on its thread.
fn answer(
    functions: &mut Functions,
    scripts: &ScriptCache,
    (limits, environment): (ScriptLimits, FunctionEnvironment),
    Call { script, arguments }: Call,
) -> Answer {
    if !functions.contains_key(&script.name) {
        let made = scripts.get(&script.name, &script.text);
        match made.and_then(|compiled| StoredFunction::new(&compiled, limits, environment)) {
            Ok(function) => drop(functions.insert(script.name.clone(), function)),
            Err(fault) => return Answer { value: Err(fault), ticks: 0 },
        }
    }
    let value = match functions.get_mut(&script.name) {
        Some(function) => function.call(&arguments),
        None => Err(Fault::NotAFunction),
    };
    Answer { value, ticks: functions.values().map(|function| function.usage().ticks).sum() }
}

impl UserFunctions for ContainerFunctions {
    fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Option<Value>, UserFunctionError> {
        let failed = |message: String| UserFunctionError { message };
        let script = self.find(name).ok_or_else(|| failed("It does not exist.".to_owned()))?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        let list: Vec<String> = arguments.iter().map(Value::to_string).collect();
        let call = Call { script, arguments: format!("[{}]", list.join(",")) };
        let answer = self.thread.get_or_init(|| self.engage()).call(call);
        let Answer { value, ticks } = answer.map_err(|error| failed(lost(name, &error)))?;
        self.ticks.store(ticks, Ordering::Relaxed);
        let value = value.map_err(|fault| failed(texts::message(name, &fault)))?;
        let Some(value) = value else { return Ok(None) };
        json::parse(value.as_bytes()).map(Some).map_err(|error| failed(error.to_string()))
    }
}

/// Why there is no thread for a function any more.
fn lost(name: &str, error: &ClusterError) -> String {
    if matches!(error, ClusterError::ScriptLate) {
        return texts::message(name, &Fault::OutOfTime);
    }
    error.to_string()
}

impl fmt::Debug for ContainerFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerFunctions").field("calls", &self.calls).finish_non_exhaustive()
    }
}

/// What a function has around it. Its time is that of one call.
struct FunctionEnvironment {
    runtime: Runtime,
    turn: Arc<ScriptTurn>,
}

impl Environment for FunctionEnvironment {
    fn now_ms(&mut self) -> i64 {
        i64::try_from(self.runtime.clock.now().as_unix_ms()).unwrap_or(i64::MAX)
    }

    fn random(&mut self) -> u64 {
        self.runtime.random.next_u64()
    }

    fn is_out_of_time(&mut self) -> bool {
        self.turn.left().is_zero() || self.turn.is_cancelled()
    }
}
