//! The thread pool of queries, with time slices.
//!
//! A query may scan a million items while others want ten. So there are more threads than
//! turns to run: a query that has run for a time slice lets the next one run, which
//! `schedule.rs` chooses. A query whose client has gone ends at the end of its slice, and
//! all of them do when the database stops.

use std::cell::RefCell;
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

/// Queries that are under way at the same time: the maximum of heavy ones, and as many that
/// may become heavy. Threads are started when they are needed. They have stack for the
/// deepest queries, and only they parse, bind and run those.
const THREADS_MAX: usize = 2 * HEAVY_MAX;

/// How long a thread waits for work before it ends. A thread keeps memory that its queries
/// have freed for the next one, and returns it when it ends: after a burst nothing of that
/// is left. Starting another one takes less than a short query does.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// The time slice: how long a query runs before others get their turn.
const SLICE: Duration = Duration::from_millis(2);

/// How long a thread runs before it offers its core to threads that wait for one. The
/// operating system lets a thread run for some milliseconds even when one that it prefers
/// has been woken; a read that was to take microseconds would wait for all of that.
const OFFER: Duration = Duration::from_micros(200);

type Work = Box<dyn FnOnce(&Arc<Turn>) + Send>;

/// The threads. Dropping it stops their queries.
#[derive(Debug)]
pub(crate) struct QueryThreads {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Runtime,
    idle_max: Duration,
    state: Mutex<State>,
    /// Notified when there is work for an idle thread.
    begun: Condvar,
    stopping: AtomicBool,
    /// Whether queries to partitions are serialised.
    writes_bytes: AtomicBool,
}

#[derive(Default)]
struct State {
    schedule: Schedule,
    /// What has not begun yet.
    queued: BTreeMap<Number, Job>,
    /// What may begin and has no thread yet.
    ready: VecDeque<Number>,
    /// Notified when a waiting query gets its turn.
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

    /// An idle thread without work ends.
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

    /// Runs work on one of the threads. It is stopped when this future is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Turn>) -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        self.queue(work, Schedule::admit).await
    }

    /// The same for work that is never refused under load: there is one for each client
    /// that waits, so it is bounded by them.
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
        let (answer, _client) = self.shared.begin(work, admit)?;
        answer.await.map_err(|_| self.shared.unanswered())
    }

    pub(crate) fn queue_for_threads(&self) -> QueryQueue {
        QueryQueue { shared: Arc::clone(&self.shared) }
    }

    /// Makes queries to partitions serialise their messages.
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
        // Waiters for one of these are notified now.
        drop(queued);
    }
}

/// The queue of the query threads, for threads that wait for what they put there.
#[derive(Clone, Debug)]
pub struct QueryQueue {
    shared: Arc<Shared>,
}

impl QueryQueue {
    /// Runs work on a query thread and waits for it. Never refused under load: there is one
    /// for each thread that waits.
    pub fn wait_for<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Turn>) -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        runtime::may_wait();
        let (answer, _client) = self.shared.begin(work, |schedule| Ok(schedule.take_in()))?;
        answer.blocking_recv().map_err(|_| self.shared.unanswered())
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
            // A panicked thread has logged that itself; a destructor has no caller to
            // report to.
            let _ = thread.join();
        }
    }
}

/// The client that waits for an answer. Dropped with the request, so it also signals that
/// the answer is not needed any more.
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

    fn begin<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Turn>) -> T + Send + 'static,
        admit: fn(&mut Schedule) -> Result<Number, Full>,
    ) -> Result<(oneshot::Receiver<T>, Client), ClusterError> {
        let (reply, answer) = oneshot::channel();
        let gone = Arc::new(AtomicBool::new(false));
        let work: Work = Box::new(move |turn| drop(reply.send(work(turn))));
        let number = self.enqueue(Job { work, gone: Arc::clone(&gone), began: None }, admit)?;
        Ok((answer, Client { shared: Arc::clone(self), number, gone }))
    }

    /// Why work ended without an answer.
    fn unanswered(&self) -> ClusterError {
        match self.stopping.load(Ordering::Relaxed) {
            true => ClusterError::Stopping,
            false => ClusterError::Internal,
        }
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

    /// Grants free turns, and makes sure that there are threads for them.
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
                    // The existing threads will do it, if later.
                    tracing::error!(%error, "a thread for queries could not be started");
                    return;
                }
            }
            // It is on its way to the first of them.
            state.idle += 1;
        }
    }

    /// The main loop of each thread.
    fn work(self: &Arc<Self>, place: usize) {
        runtime::prefer_other_threads();
        loop {
            let Some((number, job)) = self.next(place) else { return };
            let Job { work, gone, began } = job;
            let turn = Arc::new(Turn::new(self, number, gone, began));
            CURRENT.set(Some(Arc::clone(&turn)));
            // A bug in one query must not take the thread away from the others.
            if catch_unwind(AssertUnwindSafe(|| work(&turn))).is_err() {
                tracing::error!("a query panicked");
            }
            CURRENT.set(None);
            let mut state = self.state();
            state.schedule.end(number);
            state.idle += 1;
            self.advance(&mut state);
        }
    }

    /// Waits for work; `None` when there will be no more, or has been none for long. Until
    /// it has found some, the thread counts as idle.
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

thread_local! {
    /// The turn of the query that the thread runs, for code that has no other way to it.
    static CURRENT: RefCell<Option<Arc<Turn>>> = const { RefCell::new(None) };
}

/// A query's view of the scheduler: when it has to yield, and when it has to end.
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
    /// When the core was last offered to others, likewise.
    offered: AtomicU64,
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
            offered: AtomicU64::new(nanos(now)),
        }
    }

    /// For evaluation, which may take long between two candidates.
    #[must_use]
    pub fn watch(self: &Arc<Self>) -> Arc<dyn Watch> {
        Arc::clone(self) as Arc<dyn Watch>
    }

    /// For the functions of a query, where the client asks for timings.
    #[must_use]
    pub fn function_times(&self) -> Arc<FunctionTimes> {
        FunctionTimes::new(&self.shared.runtime)
    }

    /// The memory budget that all queries share.
    pub(super) fn memory(&self) -> &Arc<MemoryBudget> {
        &self.shared.runtime.memory
    }

    /// How long ago the query got its first turn.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.shared.runtime.clock.monotonic().saturating_sub(self.began)
    }

    /// Fails if the query has to end at once.
    pub fn check(&self) -> Result<(), ClusterError> {
        if self.refused.load(Ordering::Relaxed) {
            return Err(ClusterError::Busy);
        }
        let ends =
            self.gone.load(Ordering::Relaxed) || self.shared.stopping.load(Ordering::Relaxed);
        if ends { Err(ClusterError::Stopping) } else { Ok(()) }
    }

    /// Yields if it is another query's turn. To be called after each step of long work, some
    /// microseconds apart; fails if the work has to end.
    pub fn give_way(&self) -> Result<(), ClusterError> {
        self.go_on(Duration::MAX);
        self.check()
    }

    /// Yields if it is another query's turn. Returns whether there is time left.
    pub(crate) fn go_on(&self, time_max: Duration) -> bool {
        let mut now = self.shared.runtime.clock.monotonic();
        let slice = Duration::from_nanos(self.slice.load(Ordering::Relaxed));
        let ran = now.saturating_sub(slice);
        if ran >= SLICE {
            self.pass_on(ran);
            now = self.shared.runtime.clock.monotonic();
            self.slice.store(nanos(now), Ordering::Relaxed);
        }
        self.offer_core(now);
        self.check().is_ok() && now.saturating_sub(self.began) < time_max
    }

    fn offer_core(&self, now: Duration) {
        let offered = Duration::from_nanos(self.offered.load(Ordering::Relaxed));
        if now.saturating_sub(offered) >= OFFER {
            self.offered.store(nanos(now), Ordering::Relaxed);
            std::thread::yield_now();
        }
    }

    /// Lets another thread help with the query, if it gets a turn while there is work. It
    /// may never come, so the query does not wait for it before it has begun something.
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

    /// Waits, on a query thread without its turn.
    pub(crate) fn without<T>(wait: impl FnOnce() -> T) -> T {
        let turn = CURRENT.with_borrow(Clone::clone);
        let Some(turn) = turn else { return wait() };
        let mut waited = None;
        turn.while_parked(|| waited = Some(wait()));
        waited.expect("it has waited")
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
