//! The threads of scripts.
//!
//! A script is foreign code that may run for seconds. It runs on a snapshot, away from
//! everything that other requests wait for, on threads of its own: a few that run, and a
//! bounded queue before them. The thread asks its script to end when its time is over
//! ([`ScriptTurn`]), and nearly all do.
//!
//! Some operations of the JavaScript engine take long and cannot be interrupted (see
//! docs/design/scripts.md). A script that uses them is *late*: its client gets its answer
//! all the same, the thread does not count any more and another one takes its place, a
//! bounded number of times. What a late script computes is thrown away.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtime::Runtime;
use tokio::sync::oneshot;

use crate::cluster::Cluster;
use crate::error::ClusterError;

/// Scripts that run at the same time. More than there are cores, as those that query wait
/// for query threads, and one that runs for seconds should not hold up all the others; few,
/// as each may use its 64 MB.
const RUNNING_MAX: usize = 4;

/// Scripts besides that are late. With more of them no other script begins.
const LATE_MAX: usize = 4;

/// Threads, with one that waits for work and for scripts to become late.
const THREADS_MAX: usize = RUNNING_MAX + LATE_MAX + 1;

/// Scripts that wait for a thread; further ones are refused. Most take a millisecond.
const QUEUE_MAX: usize = 256;

/// A script that has run for this many times as long as it may is late. It is asked to end
/// every ten thousand steps, which take a millisecond.
const LATE_FACTOR: u32 = 2;

/// How long a thread waits for work before it ends.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// How often a thread looks whether a script is late. Not only when one should be: a
/// simulated clock does not move with the time that threads wait.
const WATCH: Duration = Duration::from_millis(250);

/// How often the pool that is dropped looks whether the last scripts have ended.
const DROP_WAIT: Duration = Duration::from_millis(20);

/// Stack of a thread: what JavaScript may use, what the engine and its host need besides,
/// and as much again for debug builds.
const STACK_BYTES: usize = 4 << 20;

type Work = Box<dyn FnOnce(&Arc<ScriptTurn>) + Send>;
type GiveUp = Box<dyn FnOnce(ClusterError) + Send>;

/// A moment that two threads know, in nanoseconds.
#[derive(Clone, Debug)]
struct Moment(Arc<AtomicU64>);

impl Moment {
    fn new(at: Duration) -> Moment {
        let moment = Moment(Arc::default());
        moment.set(at);
        moment
    }

    fn set(&self, at: Duration) {
        self.0.store(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// The threads. Dropping it ends their scripts.
#[derive(Debug)]
pub(crate) struct ScriptThreads {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    runtime: Runtime,
    /// What its threads are called.
    name: &'static str,
    state: Mutex<State>,
    /// Notified when there is something for an idle thread to look at.
    changed: Condvar,
    stopping: AtomicBool,
}

#[derive(Default)]
struct State {
    queued: VecDeque<Job>,
    running: BTreeMap<u64, Running>,
    /// Threads, and those of them that wait.
    threads: usize,
    idle: usize,
    next: u64,
}

/// A script that waits for a thread.
pub(super) struct Job {
    pub(super) work: Work,
    /// Answers the client if the script is late, or not begun.
    pub(super) give_up: GiveUp,
    pub(super) gone: Arc<AtomicBool>,
    pub(super) queued_at: Duration,
    pub(super) time_max: Duration,
}

struct Running {
    late_at: Moment,
    /// Taken when it is late.
    give_up: Option<GiveUp>,
}

/// A script's view of its thread.
pub struct ScriptTurn {
    shared: Arc<Shared>,
    gone: Arc<AtomicBool>,
    began: Moment,
    late_at: Moment,
    time_max: Duration,
}

impl ScriptTurn {
    /// Its time begins now.
    pub(super) fn restart(&self) {
        let now = self.shared.now();
        self.began.set(now);
        self.late_at.set(late_at(now, self.time_max));
    }

    /// It waits for something to do, for as long as that takes.
    pub(super) fn rest(&self) {
        self.late_at.set(Duration::MAX);
    }

    /// How long it has been running.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.shared.now().saturating_sub(self.began.get())
    }

    /// How long it may still run.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.time_max.saturating_sub(self.elapsed())
    }

    /// Whether its client has gone, or the database stops.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.gone.load(Ordering::Relaxed) || self.shared.stopping.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for ScriptTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptTurn").field("began", &self.began).finish_non_exhaustive()
    }
}

impl ScriptThreads {
    pub(crate) fn new(runtime: &Runtime, name: &'static str) -> ScriptThreads {
        let shared = Shared {
            runtime: runtime.clone(),
            name,
            state: Mutex::default(),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
        };
        ScriptThreads { shared: Arc::new(shared) }
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Runs a script, whose work asks the turn whether it has to end. It is cancelled when
    /// this future is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        time_max: Duration,
        work: impl FnOnce(&Arc<ScriptTurn>) -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        let (reply, answer) = oneshot::channel();
        let reply = Arc::new(Mutex::new(Some(reply)));
        let done = Arc::clone(&reply);
        let gone = Gone(Arc::default());
        let job = Job {
            work: Box::new(move |turn| tell(&done, Ok(work(turn)))),
            give_up: Box::new(move |error| tell(&reply, Err(error))),
            gone: Arc::clone(&gone.0),
            queued_at: self.shared.now(),
            time_max,
        };
        self.shared.enqueue(job)?;
        answer.await.unwrap_or(Err(ClusterError::Internal))
    }

    /// Cancels what runs, and refuses what waits and what comes later.
    pub(crate) fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        let queued = std::mem::take(&mut self.shared.state().queued);
        for job in queued {
            (job.give_up)(ClusterError::Stopping);
        }
        self.shared.changed.notify_all();
    }
}

type Reply<T> = Mutex<Option<oneshot::Sender<Result<T, ClusterError>>>>;

/// The first answer counts.
fn tell<T>(reply: &Reply<T>, answer: Result<T, ClusterError>) {
    let reply = reply.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(reply) = reply {
        // The client may have gone away.
        let _ = reply.send(answer);
    }
}

/// Dropped with the client's request.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for ScriptThreads {
    /// Waits for all threads but those of late scripts: nothing ends those.
    fn drop(&mut self) {
        self.stop();
        let mut state = self.shared.state();
        while state.threads > state.late() {
            let waited = self.shared.changed.wait_timeout(state, DROP_WAIT);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            self.shared.note_late(&mut state);
        }
    }
}

impl State {
    fn late(&self) -> usize {
        self.running.values().filter(|running| running.give_up.is_none()).count()
    }

    fn may_begin(&self) -> bool {
        self.running.len() - self.late() < RUNNING_MAX && self.running.len() < THREADS_MAX - 1
    }

    /// When the next script becomes late.
    fn next_late(&self) -> Option<Duration> {
        let waited_for = self.running.values().filter(|running| running.give_up.is_some());
        waited_for.map(|running| running.late_at.get()).min()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Duration {
        self.runtime.clock.monotonic()
    }

    pub(super) fn enqueue(self: &Arc<Self>, job: Job) -> Result<(), ClusterError> {
        let mut state = self.state();
        if self.stopping.load(Ordering::Relaxed) {
            return Err(ClusterError::Stopping);
        }
        if state.queued.len() >= QUEUE_MAX {
            return Err(ClusterError::ScriptsBusy);
        }
        state.queued.push_back(job);
        self.keep_one_waiting(&mut state);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// While there is work, a thread waits: for more of it, and for scripts to become late.
    fn keep_one_waiting(self: &Arc<Self>, state: &mut State) {
        if state.idle > 0 || state.threads >= THREADS_MAX {
            return;
        }
        let (shared, name) = (Arc::clone(self), format!("{}-{}", self.name, state.threads));
        let body = Box::new(move || shared.work());
        match self.runtime.tasks.spawn_with_stack(&name, STACK_BYTES, body) {
            // It ends by itself. The pool does not wait for a late one.
            Ok(thread) => drop(thread),
            Err(error) => {
                tracing::error!(%error, "a thread for scripts could not be started");
                return;
            }
        }
        state.threads += 1;
        state.idle += 1;
    }

    fn work(self: &Arc<Self>) {
        runtime::prefer_other_threads();
        while let Some((number, work, turn)) = self.next() {
            // A bug in a host must not take the thread away from other scripts.
            if catch_unwind(AssertUnwindSafe(|| work(&turn))).is_err() {
                tracing::error!("a script panicked");
            }
            let mut state = self.state();
            state.running.remove(&number);
            state.idle += 1;
            drop(state);
            self.changed.notify_one();
        }
        self.changed.notify_all();
    }

    /// Waits for a script; `None` when the thread ends.
    fn next(self: &Arc<Self>) -> Option<(u64, Work, Arc<ScriptTurn>)> {
        let mut state = self.state();
        let mut waited = Duration::ZERO;
        loop {
            self.note_late(&mut state);
            let now = self.now();
            if state.may_begin()
                && let Some(job) = state.queued.pop_front()
            {
                if let Some(job) = timely(job, now) {
                    return Some(self.begin(&mut state, job, now));
                }
                continue;
            }
            let is_stopping = self.stopping.load(Ordering::Relaxed);
            let is_spare = state.idle > 1 || state.running.is_empty() && state.queued.is_empty();
            if is_stopping || is_spare && waited >= IDLE_MAX {
                state.idle -= 1;
                state.threads -= 1;
                return None;
            }
            let until_late = state.next_late().map(|late_at| late_at.saturating_sub(now));
            let wait = until_late.map_or(IDLE_MAX, |until| until.clamp(DROP_WAIT, WATCH));
            let (locked, timeout) =
                self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            waited = if timeout.timed_out() { waited + wait } else { Duration::ZERO };
            state = locked;
        }
    }

    fn begin(
        self: &Arc<Self>,
        state: &mut State,
        job: Job,
        now: Duration,
    ) -> (u64, Work, Arc<ScriptTurn>) {
        let number = state.next;
        state.next += 1;
        let Job { work, give_up, gone, time_max, .. } = job;
        let (began, late_at) = (Moment::new(now), Moment::new(late_at(now, time_max)));
        state.running.insert(number, Running { late_at: late_at.clone(), give_up: Some(give_up) });
        state.idle -= 1;
        self.keep_one_waiting(state);
        let turn = ScriptTurn { shared: Arc::clone(self), gone, began, late_at, time_max };
        (number, work, Arc::new(turn))
    }

    /// Answers the clients of scripts that do not end.
    fn note_late(&self, state: &mut State) {
        let now = self.now();
        for running in state.running.values_mut().filter(|running| running.late_at.get() <= now) {
            if let Some(give_up) = running.give_up.take() {
                tracing::warn!("a script does not end when it is asked to: its thread is replaced");
                give_up(ClusterError::ScriptLate);
            }
        }
    }
}

fn late_at(began: Duration, time_max: Duration) -> Duration {
    began.saturating_add(time_max.saturating_mul(LATE_FACTOR))
}

/// A script that has waited for longer than it may run is refused, as its client may have
/// lost patience; one whose client has gone is dropped.
fn timely(job: Job, now: Duration) -> Option<Job> {
    if job.gone.load(Ordering::Relaxed) {
        return None;
    }
    if now.saturating_sub(job.queued_at) <= job.time_max {
        return Some(job);
    }
    (job.give_up)(ClusterError::ScriptsBusy);
    None
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Cluster {
    /// Runs a script on a thread for scripts, for as long as one operation may take. It is
    /// cancelled when this future is dropped.
    pub async fn run_script<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<ScriptTurn>) -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        let time_max = Duration::from_millis(self.limits().operation_ms_max);
        self.script_threads().run(time_max, work).await
    }
}

#[cfg(test)]
mod tests;
