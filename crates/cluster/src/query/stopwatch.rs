//! Where the time of a page goes, for clients that want to know.
//!
//! Two looks at the clock take about as long as one step along an index, so nothing of
//! this is measured for anybody else.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use query::{Called, Meter};
use runtime::Runtime;

use super::QueryTimes;
use super::threads::Turn;

/// What is measured within the run of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Going along indexes.
    Finding,
    /// Reading items.
    Loading,
    /// Making texts of rows.
    Writing,
}

/// Adds up the parts of one page.
pub(super) struct Stopwatch<'t> {
    /// None if nobody wants to know.
    turn: Option<&'t Turn>,
    finding: Cell<Duration>,
    loading: Cell<Duration>,
    writing: Cell<Duration>,
}

impl<'t> Stopwatch<'t> {
    pub(super) fn new(turn: &'t Turn, is_timed: bool) -> Stopwatch<'t> {
        let zero = || Cell::new(Duration::ZERO);
        let turn = is_timed.then_some(turn);
        Stopwatch { turn, finding: zero(), loading: zero(), writing: zero() }
    }

    pub(super) fn measure<T>(&self, part: Part, work: impl FnOnce() -> T) -> T {
        let Some(turn) = self.turn else { return work() };
        let before = turn.elapsed();
        let done = work();
        let sum = match part {
            Part::Finding => &self.finding,
            Part::Loading => &self.loading,
            Part::Writing => &self.writing,
        };
        sum.set(sum.get() + turn.elapsed().saturating_sub(before));
        done
    }

    pub(super) fn add_to(&self, times: &mut QueryTimes) {
        times.finding = self.finding.get();
        times.loading = self.loading.get();
        times.writing = self.writing.get();
    }
}

/// How long the functions of a query took.
pub struct FunctionTimes {
    runtime: Runtime,
    system_nanos: AtomicU64,
    user_nanos: AtomicU64,
}

impl fmt::Debug for FunctionTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (system, user) = (self.system(), self.user());
        f.debug_struct("FunctionTimes").field("system", &system).field("user", &user).finish()
    }
}

impl FunctionTimes {
    pub(super) fn new(runtime: &Runtime) -> Arc<FunctionTimes> {
        let nanos = || AtomicU64::new(0);
        let runtime = runtime.clone();
        Arc::new(FunctionTimes { runtime, system_nanos: nanos(), user_nanos: nanos() })
    }

    /// Of the language's own functions.
    #[must_use]
    pub fn system(&self) -> Duration {
        Duration::from_nanos(self.system_nanos.load(Ordering::Relaxed))
    }

    /// Of those that users have stored.
    #[must_use]
    pub fn user(&self) -> Duration {
        Duration::from_nanos(self.user_nanos.load(Ordering::Relaxed))
    }
}

impl Meter for FunctionTimes {
    fn now(&self) -> Duration {
        self.runtime.clock.monotonic()
    }

    fn took(&self, called: Called, time: Duration) {
        let sum = match called {
            Called::System => &self.system_nanos,
            Called::User => &self.user_nanos,
        };
        sum.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
