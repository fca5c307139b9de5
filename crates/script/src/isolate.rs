//! A JavaScript engine for one run: its own heap, its own globals, its own limits.
//!
//! Nothing is shared between isolates, so that no script can leave anything behind for the
//! next one, whatever it does to prototypes and globals. The engine calls back in two ways:
//! through functions that [`crate::calls`] gives to our own JavaScript, and through the
//! interrupt handler, which ends a run that is over its bounds.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, Error, Function, Persistent, Runtime, Value};

use crate::bytecode::{Bytecode, Kept};
use crate::calls;
use crate::describe;
use crate::fault::Fault;
use crate::host::Environment;
use crate::limits::{REJECTIONS_MAX, ScriptLimits};
use crate::prelude::GUARD;
use crate::script::{ENTRY, Script};

/// What JavaScript offers here. Left out: weak references, which would show when garbage is
/// collected, and `performance`, which is a clock of its own.
type Offered = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// Bytes of heap from which on the engine looks for garbage in cycles.
const GARBAGE_BYTES: usize = 4 << 20;

/// An engine without a host: parses scripts.
pub(crate) struct Engine {
    // Dropped in this order: a context needs its runtime.
    context: Context,
    runtime: Runtime,
}

impl Engine {
    pub(crate) fn new(limits: &ScriptLimits) -> Result<Engine, Fault> {
        let runtime = Runtime::new().map_err(|_| Fault::OutOfMemory)?;
        runtime.set_memory_limit(limits.memory_bytes_max);
        runtime.set_max_stack_size(limits.stack_bytes_max);
        runtime.set_gc_threshold(GARBAGE_BYTES);
        let context = Context::custom::<Offered>(&runtime).map_err(|_| Fault::OutOfMemory)?;
        Ok(Engine { context, runtime })
    }

    pub(crate) fn compile(&self, text: &str, file: &str, kept: Kept) -> Result<Bytecode, Fault> {
        self.context.with(|ctx| {
            Bytecode::compile(&ctx, text, file, kept)
                .map_err(|error| describe::syntax(&ctx, &error, file))
        })
    }
}

/// What the engine's callbacks share with the code that runs it.
pub(crate) struct State<H> {
    /// Taken back when the run is over.
    host: Option<H>,
    /// Whether the host is at work, or panicked at it.
    is_asked: bool,
    pub(crate) limits: ScriptLimits,
    pub(crate) usage: ScriptUsage,
    pub(crate) log: String,
    stop: Option<Fault>,
}

/// What a run took, for charges and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptUsage {
    /// How often the engine asked whether to go on: every ten thousand steps.
    pub ticks: u64,
    /// Operations on documents that were accepted.
    pub calls: u32,
    /// Pages of queries and feeds that were read.
    pub pages: u32,
}

pub(crate) type Shared<H> = Rc<RefCell<State<H>>>;

impl<H: Environment> State<H> {
    /// Lets the host work. JavaScript does not run meanwhile.
    pub(crate) fn ask<T>(&mut self, question: impl FnOnce(&mut H) -> T) -> T {
        let host = self.host.as_mut().expect("the host is taken after the last question");
        self.is_asked = true;
        let answer = question(host);
        self.is_asked = false;
        answer
    }

    /// Ends the run: from now on every question whether to go on is answered with no. The
    /// first reason counts.
    pub(crate) fn stop(&mut self, fault: Fault) {
        self.stop.get_or_insert(fault);
    }

    /// Counts a tick, and says whether the run must end.
    pub(crate) fn tick(&mut self) -> bool {
        self.usage.ticks += 1;
        self.is_over()
    }

    /// Whether the run must end.
    pub(crate) fn is_over(&mut self) -> bool {
        if self.stop.is_none() {
            if self.usage.ticks > self.limits.ticks_max {
                self.stop(Fault::OutOfSteps);
            } else if self.ask(Environment::is_out_of_time) {
                self.stop(Fault::OutOfTime);
            }
        }
        self.stop.is_some()
    }
}

/// Rejected promises that have no handler yet.
type Rejections = Rc<RefCell<Vec<Persistent<Value<'static>>>>>;

/// An engine with a host, for one run.
pub(crate) struct Isolate<H> {
    engine: Engine,
    state: Shared<H>,
    rejections: Rejections,
}

impl<H: Environment + 'static> Isolate<H> {
    /// A fresh engine in which only our own JavaScript ran.
    pub(crate) fn new(limits: ScriptLimits, host: H) -> Result<Isolate<H>, (Fault, H)> {
        let engine = match Engine::new(&limits) {
            Ok(engine) => engine,
            Err(fault) => return Err((fault, host)),
        };
        let state = State {
            host: Some(host),
            is_asked: false,
            limits,
            usage: ScriptUsage::default(),
            log: String::new(),
            stop: None,
        };
        let state = Rc::new(RefCell::new(state));
        let isolate = Isolate { engine, state, rejections: Rejections::default() };
        isolate.watch();
        Ok(isolate)
    }

    fn watch(&self) {
        let state = Rc::clone(&self.state);
        // While the host works on a call, no JavaScript runs, so the state is free here.
        let over = move || state.try_borrow_mut().is_ok_and(|mut state| state.tick());
        self.engine.runtime.set_interrupt_handler(Some(Box::new(over)));
        let rejections = Rc::clone(&self.rejections);
        self.engine.runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, _, is_handled| {
                note_rejection(&mut rejections.borrow_mut(), &ctx, promise, is_handled);
            },
        )));
    }

    /// Does something in the engine. What ended the run, or an exception, becomes a fault.
    pub(crate) fn run<R>(
        &self,
        script: &Script,
        work: impl for<'js> FnOnce(&Ctx<'js>) -> Result<R, Failure>,
    ) -> Result<R, Fault> {
        let done = self.engine.context.with(|ctx| {
            work(&ctx).map_err(|failure| match failure {
                Failure::Fault(fault) => fault,
                Failure::Engine(error) => describe::fault(&ctx, &error, script.file()),
            })
        });
        let state = self.state.borrow();
        // The engine hands a panic to the script as an exception, which a script may catch.
        assert!(!state.is_asked, "the host panicked while a script ran");
        // A script may catch what ended it, and still it has ended.
        match state.stop.clone() {
            Some(fault) => Err(fault),
            None => done,
        }
    }

    /// Gives the engine its clock and bounds. Returns a function that writes JSON.
    pub(crate) fn prepare<'js>(&self, ctx: &Ctx<'js>) -> Result<Function<'js>, Failure> {
        let guard: Function<'js> = GUARD.code()?.evaluate(ctx)?.get()?;
        Ok(guard.call((calls::guards(ctx, &self.state)?,))?)
    }

    pub(crate) fn state(&self) -> &Shared<H> {
        &self.state
    }

    pub(crate) fn limits(&self) -> ScriptLimits {
        self.state.borrow().limits
    }

    /// Runs what promises have queued until nothing is left that could run.
    pub(crate) fn run_jobs(&self, ctx: &Ctx<'_>) -> Result<(), Failure> {
        while ctx.execute_pending_job() {
            // A job that was interrupted leaves no exception behind.
            if self.state.borrow_mut().stop.is_some() {
                return Err(Failure::Fault(Fault::OutOfTime));
            }
        }
        Ok(())
    }

    /// The reason of a rejected promise that has no handler, if there is one.
    pub(crate) fn unhandled(&self, ctx: &Ctx<'_>, script: &Script) -> Option<Fault> {
        let first = self.rejections.borrow_mut().drain(..).next()?;
        let promise = first.restore(ctx).ok()?;
        let reason = promise.as_promise()?.result::<Value<'_>>()?;
        reason.err().map(|error| describe::fault(ctx, &error, script.file()))
    }

    /// A rejection that is reported by itself is not reported again.
    pub(crate) fn forget_rejections(&self) {
        self.rejections.borrow_mut().clear();
    }

    /// Ends the engine and gives back the host with what the run left.
    pub(crate) fn finish(self) -> (H, ScriptUsage, String) {
        let mut state = self.state.borrow_mut();
        let host = state.host.take().expect("the host is taken once, here");
        (host, state.usage, std::mem::take(&mut state.log))
    }
}

/// Runs a script's own text, which defines its functions, and finds the one to call.
pub(crate) fn entry<'js>(ctx: &Ctx<'js>, script: &Script) -> Result<Function<'js>, Failure> {
    script.code().evaluate(ctx)?;
    let value: Value<'js> = ctx.globals().get(ENTRY)?;
    value.into_function().ok_or(Failure::Fault(Fault::NotAFunction))
}

impl<H> Drop for Isolate<H> {
    fn drop(&mut self) {
        // These belong to the engine, which goes after this.
        self.rejections.borrow_mut().clear();
    }
}

fn note_rejection<'js>(
    rejections: &mut Vec<Persistent<Value<'static>>>,
    ctx: &Ctx<'js>,
    promise: Value<'js>,
    is_handled: bool,
) {
    if is_handled {
        let same = |known: &Persistent<Value<'static>>| {
            known.clone().restore(ctx).is_ok_and(|known| known == promise)
        };
        rejections.retain(|known| !same(known));
    } else if rejections.len() < REJECTIONS_MAX {
        rejections.push(Persistent::save(ctx, promise));
    }
}

/// Why work in an engine ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    Fault(Fault),
    /// Often an exception that is pending in the engine.
    Engine(Error),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Failure::Fault(fault)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Engine(error)
    }
}
