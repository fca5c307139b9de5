//! The threads that answer queries.
//!
//! A query may look at a million items while others want ten. So there are more
//! threads than turns to run: whoever has run for a slice of time lets the next one
//! run, in the order of coming.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use runtime::{Clock, Runtime, TaskHandle};
use tokio::sync::oneshot;

use super::{QUERY_TIME_MAX, QueryFailure};
use crate::error::ClusterError;

/// Queries that are under way at the same time.
const THREADS: usize = 16;

/// Queries that run at the same moment: two cores are the norm, and commands and
/// connections need them, too.
const TURNS: usize = 2;

/// Queries that may wait for a thread. Whoever comes later is told to try again.
const QUEUE_MAX: usize = 256;

/// How long a query runs before others get their turn.
const SLICE: Duration = Duration::from_millis(2);

type Job = Box<dyn FnOnce(&mut Pace<'_>) + Send>;

/// The threads. Dropping it lets them finish what is queued.
#[derive(Debug)]
pub(crate) struct QueryThreads {
    jobs: Option<SyncSender<Job>>,
    threads: Vec<TaskHandle>,
}

impl QueryThreads {
    pub(crate) fn start(runtime: &Runtime) -> std::io::Result<QueryThreads> {
        let (jobs, to_do) = sync_channel(QUEUE_MAX);
        let (to_do, turns) = (Arc::new(Mutex::new(to_do)), Arc::new(Turns::default()));
        let mut threads = Vec::with_capacity(THREADS);
        for number in 0..THREADS {
            let (to_do, turns) = (Arc::clone(&to_do), Arc::clone(&turns));
            let clock = Arc::clone(&runtime.clock);
            let body = Box::new(move || work(&to_do, &turns, clock.as_ref()));
            threads.push(runtime.tasks.spawn(&format!("query-{number}"), body)?);
        }
        Ok(QueryThreads { jobs: Some(jobs), threads })
    }

    /// Does something on one of the threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Pace<'_>) -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |pace| drop(reply.send(work(pace))));
        let jobs = self.jobs.as_ref().ok_or(ClusterError::Stopping)?;
        jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => ClusterError::Busy,
            TrySendError::Disconnected(_) => ClusterError::Stopping,
        })?;
        answer.await.map_err(|_| ClusterError::Internal)
    }
}

impl Drop for QueryThreads {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A panicked thread has reported itself; there is nobody to tell here.
            let _ = thread.join();
        }
    }
}

fn work(jobs: &Mutex<Receiver<Job>>, turns: &Turns, clock: &dyn Clock) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        turns.take();
        let now = clock.monotonic();
        let mut pace = Pace { turns, clock, began: now, slice: now };
        // A bug in one query must not take the thread away from the others.
        if catch_unwind(AssertUnwindSafe(|| job(&mut pace))).is_err() {
            tracing::error!("a query panicked");
        }
        turns.give_back();
    }
}

/// How a query gets along with the others, and when it has to end.
pub(crate) struct Pace<'t> {
    turns: &'t Turns,
    clock: &'t dyn Clock,
    began: Duration,
    /// When the current slice began.
    slice: Duration,
}

impl Pace<'_> {
    /// Lets others run if it is their turn. Whether there is time left.
    pub(crate) fn go_on(&mut self, time_max: Duration) -> bool {
        let mut now = self.clock.monotonic();
        if now.saturating_sub(self.slice) >= SLICE {
            self.turns.pass_on();
            now = self.clock.monotonic();
            self.slice = now;
        }
        now.saturating_sub(self.began) < time_max
    }

    /// As `go_on`, for queries that cannot stop half-way.
    pub(super) fn go_on_to_the_end(&mut self) -> Result<(), QueryFailure> {
        let _ = self.go_on(QUERY_TIME_MAX);
        if self.elapsed() < QUERY_TIME_MAX { Ok(()) } else { Err(QueryFailure::TimedOut) }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.began)
    }
}

/// Turns to run, in the order of asking.
#[derive(Debug)]
struct Turns {
    state: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug)]
struct Queue {
    free: usize,
    waiting: VecDeque<u64>,
    next: u64,
}

impl Default for Turns {
    fn default() -> Turns {
        let state = Queue { free: TURNS, waiting: VecDeque::new(), next: 0 };
        Turns { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl Turns {
    fn take(&self) {
        let mut queue = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let own = queue.next;
        queue.next += 1;
        queue.waiting.push_back(own);
        while queue.free == 0 || queue.waiting.front() != Some(&own) {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.waiting.pop_front();
        queue.free -= 1;
        // The next one may have a turn as well.
        self.changed.notify_all();
    }

    fn give_back(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).free += 1;
        self.changed.notify_all();
    }

    fn pass_on(&self) {
        let somebody_waits =
            !self.state.lock().unwrap_or_else(PoisonError::into_inner).waiting.is_empty();
        if somebody_waits {
            self.give_back();
            self.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn never_more_run_than_there_are_turns() {
        let (turns, running, most) = (Turns::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    turns.take();
                    for _ in 0..100 {
                        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        running.fetch_sub(1, Ordering::SeqCst);
                        turns.pass_on();
                    }
                    turns.give_back();
                });
            }
        });
        assert!((1..=TURNS).contains(&most.load(Ordering::SeqCst)));
        let queue = turns.state.lock().unwrap();
        assert_eq!((queue.free, queue.waiting.len()), (TURNS, 0));
    }
}
