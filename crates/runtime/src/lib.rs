//! The outside world as three small traits: time, randomness and threads; and memory as a
//! budget.
//!
//! Everything above takes these as arguments instead of reaching for the operating system,
//! so that a test controls what it would otherwise have to wait for or hope for. The
//! workspace's `clippy.toml` bans the direct calls; only the twins in this crate may make
//! them.
//!
//! A simulated runtime fixes time and randomness. Its tasks are threads that run as they like,
//! unless a test runs in [`SeededTasks::run`] and hands that down: then one runs at a time, and
//! the seed decides which. Disk faults are not injected here: they come in at the storage
//! door, where there is a seam.
//!
//! Must not know: documents.

mod clock;
mod log_context;
mod memory;
mod random;
mod schedule;
mod sync;
mod tasks;
mod worker;

use std::sync::Arc;

pub use clock::{Clock, Millis, RealClock, SimulatedClock, VirtualClock};
pub use log_context::{LogContext, in_log_context, log_context, with_log_context};
pub use memory::{MemoryBudget, MemoryUsage, OutOfMemory, Reservation};
pub use random::{Random, RealRandom, SeededRandom};
pub use schedule::{SeededTasks, Trace, reschedule};
pub use sync::{Condvar, Parker, Receiver, SharedReceiver, SyncSender, sync_channel};
pub use tasks::{
    Body, STACK_BYTES, TaskHandle, TaskPanicked, Tasks, ThreadTasks, prefer_other_threads,
};
pub use worker::{
    SHORT_READ_KEYS_MAX, SHORT_WORK_ROWS_MAX, may_wait, on_async_worker, short_read, short_work,
    yield_now,
};

/// One bundle of the outside world, cheap to clone and hand down.
#[derive(Clone, Debug)]
pub struct Runtime {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub tasks: Arc<dyn Tasks>,
    /// For what queries keep while they run. Unlimited by default.
    pub memory: Arc<MemoryBudget>,
}

impl Runtime {
    /// The real world: system time, the operating system's randomness, threads.
    #[must_use]
    pub fn real() -> Runtime {
        Runtime {
            clock: Arc::new(RealClock::new()),
            random: Arc::new(RealRandom),
            tasks: Arc::new(ThreadTasks),
            memory: MemoryBudget::unlimited(),
        }
    }

    /// A world in which time moves only when someone sleeps and randomness
    /// follows from `seed`. Threads run as they like: see the crate documentation.
    #[must_use]
    pub fn simulated(seed: u64) -> Runtime {
        Runtime::simulated_at(Arc::new(SimulatedClock::new()), seed)
    }

    /// Like [`Runtime::simulated`], for a test that moves the clock itself.
    #[must_use]
    pub fn simulated_at(clock: Arc<SimulatedClock>, seed: u64) -> Runtime {
        let random = Arc::new(SeededRandom::new(seed));
        let (tasks, memory) = (Arc::new(ThreadTasks), MemoryBudget::unlimited());
        Runtime { clock, random, tasks, memory }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_world() {
        let (one, two) = (Runtime::simulated(7), Runtime::simulated(7));
        for _ in 0..100 {
            assert_eq!(one.random.next_u64(), two.random.next_u64());
        }
        assert_eq!(one.clock.now(), two.clock.now());
    }

    #[test]
    fn a_test_can_keep_the_clock() {
        let clock = Arc::new(SimulatedClock::new());
        let runtime = Runtime::simulated_at(Arc::clone(&clock), 1);
        let before = runtime.clock.now();
        clock.advance(Duration::from_secs(5));
        assert_eq!(runtime.clock.now(), before.plus(Duration::from_secs(5)));
    }

    #[test]
    fn the_real_world_moves_forward() {
        let runtime = Runtime::real();
        let before = runtime.clock.monotonic();
        runtime.clock.sleep(Duration::from_millis(2));
        assert!(runtime.clock.monotonic() >= before + Duration::from_millis(2));
        assert!(runtime.clock.now() > Millis::from_unix_ms(1_600_000_000_000));
    }
}
