//! The threads that answer queries.
//!
//! A query may look at a million items while others want ten. So there are more
//! threads than turns to run: whoever has run for a slice of time lets the next one
//! run, and `schedule.rs` says who that is. A query whose client has gone ends at the
//! end of its slice, and all of them do when the database stops.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use query::{DEEP_STACK_BYTES, Watch};
use runtime::{MemoryBudget, Runtime, TaskHandle};
use tokio::sync::oneshot;

use super::fanout::Channel;
use super::function_times::FunctionTimes;
use super::schedule::{Full, HEAVY_MAX, Number, Schedule};
use crate::error::ClusterError;

/// Queries that are under way at the same time: all the heavy ones there may be, and as
/// many that may become so. Threads are made when they are needed. They have stack for the
/// deepest queries, and only they parse, bind and run those.
const THREADS_MAX: usize = 2 * HEAVY_MAX;

/// How long a thread waits for something to do before it ends. A thread keeps memory that
/// its queries have freed for the next one, and gives it back with its end: after a rush
/// nothing of that is left. Starting another one takes less than a short query does.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// How long a query runs before others get their turn.
const SLICE: Duration = Duration::from_millis(2);

type Work = Box<dyn FnOnce(&Arc<Turn>) + Send>;

/// The threads. Dropping it stops what they do.
#[derive(Debug)]
pub(crate) struct QueryThreads {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Runtime,
    idle_max: Duration,
    state: Mutex<State>,
    /// Told when there is something for an idle thread.
    begun: Condvar,
    stopping: AtomicBool,
    /// Whether partitions are asked in bytes.
    writes_bytes: AtomicBool,
}

#[derive(Default)]
struct State {
    schedule: Schedule,
    /// What has not begun yet.
    queued: BTreeMap<Number, Job>,
    /// What may begin and has no thread yet.
    ready: VecDeque<Number>,
    /// Where those who wait for a turn are told that it is theirs.
    waiting: BTreeMap<Number, Arc<Condvar>>,
    idle: usize,
    threads: BTreeMap<usize, TaskHandle>,
    closed: bool,
}

impl State {
    /// The lowest number that no thread has.
    fn free_place(&self) -> usize {
        let taken = self.threads.keys().enumerate().take_while(|(place, taken)| place == *taken);
        taken.count()
    }

    /// An idle thread that nothing is left for ends.
    fn leave(&mut self, place: usize) {
        self.idle -= 1;
        drop(self.threads.remove(&place));
    }
}

struct Job {
    work: Work,
    gone: Arc<AtomicBool>,
    /// When the query began, if that was before.
    began: Option<Duration>,
}

impl QueryThreads {
    pub(crate) fn new(runtime: &Runtime) -> QueryThreads {
        QueryThreads::that_wait(IDLE_MAX, runtime)
    }

    fn that_wait(idle_max: Duration, runtime: &Runtime) -> QueryThreads {
        let (state, begun) = (Mutex::default(), Condvar::new());
        let stopping = AtomicBool::new(false);
        let writes_bytes = AtomicBool::new(false);
        let runtime = runtime.clone();
        let shared = Shared { runtime, idle_max, state, begun, stopping, writes_bytes };
        QueryThreads { shared: Arc::new(shared) }
    }

    /// Does something on one of the threads. It is stopped when this is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Turn>) -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        self.queue(work, Schedule::admit).await
    }

    /// The same for what is never refused because much is going on: there is one for each
    /// client that waits, so it is bounded by them.
    pub(crate) async fn run_always<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Turn>) -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        self.queue(work, |schedule| Ok(schedule.take_in())).await
    }

    async fn queue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Turn>) -> T + Send + 'static,
        admit: fn(&mut Schedule) -> Result<Number, Full>,
    ) -> Result<T, ClusterError> {
        let (reply, answer) = oneshot::channel();
        let gone = Arc::new(AtomicBool::new(false));
        let work: Work = Box::new(move |turn| drop(reply.send(work(turn))));
        let number =
            self.shared.enqueue(Job { work, gone: Arc::clone(&gone), began: None }, admit)?;
        let _client = Client { shared: Arc::clone(&self.shared), number, gone };
        let answered = answer.await;
        answered.map_err(|_| match self.shared.stopping.load(Ordering::Relaxed) {
            true => ClusterError::Stopping,
            false => ClusterError::Internal,
        })
    }

    /// Has queries ask partitions in bytes.
    pub(crate) fn write_bytes(&self) {
        self.shared.writes_bytes.store(true, Ordering::Relaxed);
    }

    /// Ends what runs, and refuses what waits and what comes later.
    pub(crate) fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        let mut state = self.shared.state();
        let queued = std::mem::take(&mut state.queued);
        for number in queued.keys() {
            state.schedule.end(*number);
        }
        state.ready.clear();
        drop(state);
        // Whoever waits for one of these hears of it now.
        drop(queued);
    }
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        self.stop();
        let mut state = self.shared.state();
        state.closed = true;
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        self.shared.begun.notify_all();
        for thread in threads.into_values() {
            // A panicked thread has reported itself; there is nobody to tell here.
            let _ = thread.join();
        }
    }
}

/// Whoever waits for an answer. Dropped with the request, so it also says that nobody
/// waits any more.
struct Client {
    shared: Arc<Shared>,
    number: Number,
    gone: Arc<AtomicBool>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
        let mut state = self.shared.state();
        let queued = state.queued.remove(&self.number);
        if queued.is_some() {
            state.ready.retain(|number| *number != self.number);
            state.schedule.end(self.number);
            self.shared.advance(&mut state);
        }
        drop(state);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(
        self: &Arc<Self>,
        job: Job,
        admit: fn(&mut Schedule) -> Result<Number, Full>,
    ) -> Result<Number, ClusterError> {
        let mut state = self.state();
        if self.stopping.load(Ordering::Relaxed) {
            return Err(ClusterError::Stopping);
        }
        let number = admit(&mut state.schedule).map_err(|Full| ClusterError::Busy)?;
        state.queued.insert(number, job);
        self.advance(&mut state);
        Ok(number)
    }

    /// Gives the turns that are free, and sees to it that there are threads for them.
    fn advance(self: &Arc<Self>, state: &mut State) {
        loop {
            let free = THREADS_MAX - state.threads.len() + state.idle;
            let Some(grant) = state.schedule.grant(state.ready.len() < free) else { break };
            if grant.is_first {
                state.ready.push_back(grant.number);
                self.begun.notify_one();
            } else if let Some(signal) = state.waiting.get(&grant.number) {
                signal.notify_one();
            }
        }
        while state.ready.len() > state.idle && state.threads.len() < THREADS_MAX {
            let shared = Arc::clone(self);
            let place = state.free_place();
            let (name, body) = (format!("query-{place}"), Box::new(move || shared.work(place)));
            match self.runtime.tasks.spawn_with_stack(&name, DEEP_STACK_BYTES, body) {
                Ok(thread) => drop(state.threads.insert(place, thread)),
                Err(error) => {
                    // Those that there are will do it, if later.
                    tracing::error!(%error, "a thread for queries could not be started");
                    return;
                }
            }
            // It is on its way to the first of them.
            state.idle += 1;
        }
    }

    /// What each thread does.
    fn work(self: &Arc<Self>, place: usize) {
        loop {
            let Some((number, job)) = self.next(place) else { return };
            let Job { work, gone, began } = job;
            let turn = Arc::new(Turn::new(self, number, gone, began));
            // A bug in one query must not take the thread away from the others.
            if catch_unwind(AssertUnwindSafe(|| work(&turn))).is_err() {
                tracing::error!("a query panicked");
            }
            let mut state = self.state();
            state.schedule.end(number);
            state.idle += 1;
            self.advance(&mut state);
        }
    }

    /// Waits for something to begin with; `None` when there will be nothing more, or has
    /// been nothing for long. Until it has found something, the thread counts as idle.
    fn next(&self, place: usize) -> Option<(Number, Job)> {
        let mut state = self.state();
        let mut waited_long = false;
        loop {
            let first = state.ready.pop_front();
            if let Some(number) = first
                && let Some(job) = state.queued.remove(&number)
            {
                state.idle -= 1;
                return Some((number, job));
            }
            if state.closed {
                return None;
            }
            if first.is_none() {
                if waited_long {
                    state.leave(place);
                    return None;
                }
                let waited = self.begun.wait_timeout(state, self.idle_max);
                let (locked, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
                (state, waited_long) = (locked, outcome.timed_out());
            }
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// What a query on a thread sees of the others: when it has to let them run, and when it
/// has to end.
#[derive(Debug)]
pub struct Turn {
    shared: Arc<Shared>,
    number: Number,
    signal: Arc<Condvar>,
    gone: Arc<AtomicBool>,
    /// There were too many heavy ones.
    refused: AtomicBool,
    began: Duration,
    /// When the current slice began, in nanoseconds. Only the query's own thread looks.
    slice: AtomicU64,
}

impl Turn {
    fn new(
        shared: &Arc<Shared>,
        number: Number,
        gone: Arc<AtomicBool>,
        began: Option<Duration>,
    ) -> Turn {
        let now = shared.runtime.clock.monotonic();
        let began = began.unwrap_or(now);
        Turn {
            shared: Arc::clone(shared),
            number,
            signal: Arc::default(),
            gone,
            refused: AtomicBool::new(false),
            began,
            slice: AtomicU64::new(nanos(now)),
        }
    }

    /// For evaluation, which takes its time between two candidates.
    #[must_use]
    pub fn watch(self: &Arc<Self>) -> Arc<dyn Watch> {
        Arc::clone(self) as Arc<dyn Watch>
    }

    /// For the functions of a query, where somebody wants to know how long they take.
    #[must_use]
    pub fn function_times(&self) -> Arc<FunctionTimes> {
        FunctionTimes::new(&self.shared.runtime)
    }

    /// What all queries share of the memory.
    pub(super) fn memory(&self) -> &Arc<MemoryBudget> {
        &self.shared.runtime.memory
    }

    /// How long ago the query got its first turn.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.shared.runtime.clock.monotonic().saturating_sub(self.began)
    }

    /// Fails if the query has to end whatever it has come to.
    pub fn check(&self) -> Result<(), ClusterError> {
        if self.refused.load(Ordering::Relaxed) {
            return Err(ClusterError::Busy);
        }
        let ends =
            self.gone.load(Ordering::Relaxed) || self.shared.stopping.load(Ordering::Relaxed);
        if ends { Err(ClusterError::Stopping) } else { Ok(()) }
    }

    /// Lets others run if it is their turn. Whether there is time left.
    pub(crate) fn go_on(&self, time_max: Duration) -> bool {
        let now = self.shared.runtime.clock.monotonic();
        let slice = Duration::from_nanos(self.slice.load(Ordering::Relaxed));
        let ran = now.saturating_sub(slice);
        if ran >= SLICE {
            self.pass_on(ran);
            let now = self.shared.runtime.clock.monotonic();
            self.slice.store(nanos(now), Ordering::Relaxed);
        }
        self.check().is_ok() && self.elapsed() < time_max
    }

    /// Has another thread help with the query, if it gets a turn while there is something to
    /// do. It may never come, so nobody waits for it before it has begun something.
    pub(super) fn spawn_helper(&self, work: impl FnOnce(&Arc<Turn>) + Send + 'static) {
        let gone = Arc::clone(&self.gone);
        let job = Job { work: Box::new(work), gone, began: Some(self.began) };
        let mut state = self.shared.state();
        if !self.shared.stopping.load(Ordering::Relaxed) {
            let number = state.schedule.take_in_helper(self.number);
            state.queued.insert(number, job);
            self.shared.advance(&mut state);
        }
    }

    /// Waits for helpers, while others have the turn.
    pub(super) fn while_parked(&self, wait: impl FnOnce()) {
        let mut state = self.shared.state();
        state.schedule.park(self.number);
        self.shared.advance(&mut state);
        drop(state);
        wait();
        let mut state = self.shared.state();
        state.schedule.unpark(self.number);
        state.waiting.insert(self.number, Arc::clone(&self.signal));
        self.shared.advance(&mut state);
        self.wait_for_turn(state);
        let now = self.shared.runtime.clock.monotonic();
        self.slice.store(nanos(now), Ordering::Relaxed);
    }

    /// How this query reaches partitions.
    pub(super) fn channel(&self) -> Channel {
        match self.shared.writes_bytes.load(Ordering::Relaxed) {
            true => Channel::Bytes,
            false => Channel::Direct,
        }
    }

    /// Gives the turn back after having run for some time, and waits for the next one.
    fn pass_on(&self, ran: Duration) {
        let mut state = self.shared.state();
        if state.schedule.pause(self.number, ran).is_err() {
            self.refused.store(true, Ordering::Relaxed);
            return;
        }
        state.waiting.insert(self.number, Arc::clone(&self.signal));
        self.shared.advance(&mut state);
        self.wait_for_turn(state);
    }

    fn wait_for_turn(&self, mut state: MutexGuard<'_, State>) {
        while !state.schedule.is_running(self.number) {
            state = self.signal.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.remove(&self.number);
    }
}

impl Watch for Turn {
    fn may_go_on(&self) -> bool {
        self.go_on(Duration::MAX)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
