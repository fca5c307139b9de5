//! Threads of user-defined functions, which queries call.
//!
//! A function is foreign code like any script, with operations that cannot be interrupted
//! (see `scripts.rs`). On a query thread it could hold one of the few turns for ever. So the
//! functions of a query live on a thread of another pool for as long as the query's page
//! does, and the query thread waits for each call: a moment with its turn, longer without.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::execution::scripts::{Job, ScriptTurn, Shared};
use crate::query::Turn;

/// How long a query keeps its turn while it waits for a call. Most take microseconds, and
/// giving the turn away and getting it back takes some.
const WAIT_WITH_TURN: Duration = Duration::from_millis(1);

/// The pool, for queries that may call functions.
#[derive(Clone, Debug)]
pub struct FunctionThreads {
    shared: Arc<Shared>,
    time_max: Duration,
}

impl FunctionThreads {
    /// A thread that answers calls until it is dropped. `begin` makes what answers them, on
    /// that thread. Never waits; the first call does.
    pub fn engage<Q, A, F>(
        &self,
        begin: impl FnOnce(&Arc<ScriptTurn>) -> F + Send + 'static,
    ) -> FunctionThread<Q, A>
    where
        Q: Send + 'static,
        A: Send + 'static,
        F: FnMut(Q) -> A,
    {
        let exchange = Arc::new(Exchange { slot: Mutex::new(Slot::Idle), changed: Condvar::new() });
        let (served, lost) = (Arc::clone(&exchange), Arc::clone(&exchange));
        let job = Job {
            work: Box::new(move |turn| served.serve(turn, begin)),
            give_up: Box::new(move |error| lost.put(Slot::Failed(Some(error)))),
            gone: Arc::new(AtomicBool::new(false)),
            queued_at: self.shared.now(),
            time_max: self.time_max,
        };
        let gone = Arc::clone(&job.gone);
        if let Err(error) = self.shared.enqueue(job) {
            exchange.put(Slot::Failed(Some(error)));
        }
        FunctionThread { exchange, gone, calls: Mutex::new(()) }
    }
}

/// A thread that answers the calls of one query, one at a time.
pub struct FunctionThread<Q, A> {
    exchange: Arc<Exchange<Q, A>>,
    gone: Arc<AtomicBool>,
    /// Held during a call: a query may run on several threads.
    calls: Mutex<()>,
}

impl<Q, A> fmt::Debug for FunctionThread<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionThread").finish_non_exhaustive()
    }
}

impl<Q, A> FunctionThread<Q, A> {
    /// Calls, and waits for the answer. An error is final: the thread is lost.
    pub fn call(&self, question: Q) -> Result<A, ClusterError> {
        let _one_at_a_time = match self.calls.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                Turn::without(|| self.calls.lock().unwrap_or_else(PoisonError::into_inner))
            }
        };
        let mut slot = self.exchange.slot();
        if !matches!(*slot, Slot::Failed(_)) {
            *slot = Slot::Asked(question);
            self.exchange.changed.notify_all();
        }
        let brief = self.exchange.changed.wait_timeout_while(slot, WAIT_WITH_TURN, Slot::is_open);
        let (mut slot, _) = brief.unwrap_or_else(PoisonError::into_inner);
        if slot.is_open() {
            drop(slot);
            slot = Turn::without(|| self.exchange.wait_while(Slot::is_open));
        }
        slot.take_answer()
    }
}

impl<Q, A> Drop for FunctionThread<Q, A> {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        self.exchange.put(Slot::Failed(None));
    }
}

/// Where the two threads meet.
struct Exchange<Q, A> {
    slot: Mutex<Slot<Q, A>>,
    changed: Condvar,
}

enum Slot<Q, A> {
    Idle,
    Asked(Q),
    Busy,
    Answered(A),
    /// There will be no more answers.
    Failed(Option<ClusterError>),
}

impl<Q, A> Slot<Q, A> {
    /// Whether a call waits for its answer.
    fn is_open(&mut self) -> bool {
        matches!(self, Slot::Asked(_) | Slot::Busy)
    }

    fn take_answer(&mut self) -> Result<A, ClusterError> {
        match std::mem::replace(self, Slot::Idle) {
            Slot::Answered(answer) => Ok(answer),
            Slot::Failed(error) => {
                *self = Slot::Failed(None);
                Err(error.unwrap_or(ClusterError::Internal))
            }
            Slot::Idle | Slot::Asked(_) | Slot::Busy => Err(ClusterError::Internal),
        }
    }
}

impl<Q, A> Exchange<Q, A> {
    fn slot(&self) -> MutexGuard<'_, Slot<Q, A>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Failure is final.
    fn put(&self, new: Slot<Q, A>) {
        let mut slot = self.slot();
        if !matches!(*slot, Slot::Failed(_)) {
            *slot = new;
        }
        drop(slot);
        self.changed.notify_all();
    }

    fn wait_while(
        &self,
        condition: impl FnMut(&mut Slot<Q, A>) -> bool,
    ) -> MutexGuard<'_, Slot<Q, A>> {
        let waited = self.changed.wait_while(self.slot(), condition);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers calls on the function thread. It is late only during a call.
    fn serve<F: FnMut(Q) -> A>(
        &self,
        turn: &Arc<ScriptTurn>,
        begin: impl FnOnce(&Arc<ScriptTurn>) -> F,
    ) {
        let mut answer = begin(turn);
        turn.rest();
        loop {
            let asked = |slot: &mut Slot<Q, A>| !matches!(slot, Slot::Asked(_) | Slot::Failed(_));
            let mut slot = self.wait_while(asked);
            let Slot::Asked(question) = std::mem::replace(&mut *slot, Slot::Busy) else {
                *slot = Slot::Failed(None);
                return;
            };
            drop(slot);
            turn.restart();
            let answered = answer(question);
            // Before it is known: what the caller does then is no longer part of the call.
            turn.rest();
            self.put(Slot::Answered(answered));
        }
    }
}

impl Cluster {
    /// The threads of user-defined functions.
    #[must_use]
    pub fn function_threads(&self) -> FunctionThreads {
        let time_max = Duration::from_millis(self.limits().operation_ms_max);
        FunctionThreads { shared: self.function_pool().shared(), time_max }
    }
}

#[cfg(test)]
mod tests {
    use runtime::{Runtime, SimulatedClock};

    use super::*;
    use crate::execution::scripts::ScriptThreads;

    fn pool() -> (Arc<SimulatedClock>, ScriptThreads, FunctionThreads) {
        let clock = Arc::new(SimulatedClock::new());
        let pool = ScriptThreads::new(&Runtime::simulated_at(Arc::clone(&clock), 1), "function");
        let threads = FunctionThreads { shared: pool.shared(), time_max: Duration::from_secs(5) };
        (clock, pool, threads)
    }

    #[test]
    fn calls_are_answered_by_one_thread_that_keeps_its_state() {
        let (_, _pool, threads) = pool();
        let thread = threads.engage(|_| {
            let mut sum = 0;
            move |n: u64| {
                sum += n;
                (sum, std::thread::current().name().map(str::to_owned))
            }
        });
        let name = Some("function-0".to_owned());
        assert_eq!(thread.call(1).unwrap(), (1, name.clone()));
        assert_eq!(thread.call(2).unwrap(), (3, name));
    }

    #[test]
    fn a_call_that_does_not_end_fails_and_time_between_calls_does_not_count() {
        let (clock, _pool, threads) = pool();
        let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
        let (begun, has_begun) = std::sync::mpsc::sync_channel::<()>(1);
        let thread = Arc::new(threads.engage(move |_| {
            move |hangs: bool| {
                if hangs {
                    let _ = begun.send(());
                    let _ = released.recv();
                }
                7
            }
        }));
        assert_eq!(thread.call(false).unwrap(), 7);
        clock.advance(Duration::from_secs(3_600));
        assert_eq!(thread.call(false).unwrap(), 7);
        let caller = Arc::clone(&thread);
        let (sender, answer) = std::sync::mpsc::sync_channel(1);
        let call = move || {
            let _ = sender.send(caller.call(true));
        };
        let handle = Runtime::real().tasks.spawn("caller", Box::new(call)).unwrap();
        has_begun.recv().unwrap();
        clock.advance(Duration::from_secs(11));
        assert!(matches!(answer.recv().unwrap(), Err(ClusterError::ScriptLate)));
        handle.join().unwrap();
        assert!(thread.call(false).is_err());
        drop(release);
    }
}
