//! Time spent in functions, for clients that ask for timings.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use query::{Called, StepMeter};
use runtime::Runtime;

/// Time that the functions of a query took.
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

impl StepMeter for FunctionTimes {
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
