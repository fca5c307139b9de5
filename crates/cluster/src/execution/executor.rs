//! The executors: a few threads that apply commands.
//!
//! Applying a command reads from storage and may wait for the committer's queue
//! (backpressure), so it never runs on the async workers. A partition always belongs to the
//! same executor, which keeps its commands in order without further locks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::TrySendError;

use model::charge::Work;
use model::position::Timestamp;
use partition::{Command, CommandError, Outcome, Purpose};
use runtime::{Receiver, Runtime, SyncSender, TaskHandle, sync_channel};
use storage::CommitStatus;
use tokio::sync::{Semaphore, oneshot};

use crate::error::ClusterError;
use crate::layout::partition_handle::{Durable, NotServing, PartitionHandle};

/// Threads that apply commands. Two cores are the norm, and one command costs
/// far less than the fsync it waits for.
const EXECUTORS: usize = 2;

/// Commands that may wait for one executor. At a hundred microseconds each this is a tenth
/// of a second of work; further ones are refused, to be retried later.
const QUEUE_MAX: usize = 1024;

/// Calls that may wait for one executor; further ones wait for a permit. There is one for
/// each change of a layout that is under way and one for each copier, so this is plenty.
const CALLS_MAX: usize = 64;

type Reply = oneshot::Sender<Result<Outcome, ClusterError>>;

enum Job {
    Apply {
        handle: Arc<PartitionHandle>,
        command: Arc<Command>,
        purpose: Purpose,
        reply: Reply,
    },
    /// There is a call to look at.
    Wake,
}

/// Work other than a command that has to run between commands.
type Call = Box<dyn FnOnce() + Send>;

/// The executors. Dropping it lets them finish what is queued.
#[derive(Debug)]
pub(crate) struct Executors {
    lanes: Vec<Lane>,
    threads: Vec<TaskHandle>,
}

/// The queues of one executor.
struct Lane {
    jobs: SyncSender<Job>,
    /// Apart from the commands, and served first: a change of the layout must not be
    /// refused under load.
    calls: SyncSender<Call>,
    /// As many permits as the queue of calls has slots.
    room: Arc<Semaphore>,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane").finish_non_exhaustive()
    }
}

impl Executors {
    pub(crate) fn start(runtime: &Runtime) -> std::io::Result<Executors> {
        let mut executors = Executors { lanes: Vec::new(), threads: Vec::new() };
        for number in 0..EXECUTORS {
            let (jobs, to_do) = sync_channel(QUEUE_MAX);
            let (calls, called) = sync_channel(CALLS_MAX);
            let runtime_of_thread = runtime.clone();
            let thread = runtime.tasks.spawn(
                &format!("executor-{number}"),
                Box::new(move || execute(&runtime_of_thread, &to_do, &called)),
            )?;
            let room = Arc::new(Semaphore::new(CALLS_MAX));
            executors.lanes.push(Lane { jobs, calls, room });
            executors.threads.push(thread);
        }
        Ok(executors)
    }

    /// Queues a command for a partition.
    pub(crate) async fn apply(
        &self,
        handle: Arc<PartitionHandle>,
        (command, purpose): (Arc<Command>, Purpose),
    ) -> Result<Outcome, ClusterError> {
        let (reply, answer) = oneshot::channel();
        let lane = self.lane(handle.lane())?;
        lane.jobs.try_send(Job::Apply { handle, command, purpose, reply }).map_err(refused)?;
        answer.await.unwrap_or(Err(ClusterError::Stopping))
    }

    /// Runs a closure on the thread that applies a partition's commands, before those that
    /// wait. Never refused under load.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        lane: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        let (reply, answer) = oneshot::channel();
        let lane = self.lane(lane)?;
        let room = Arc::clone(&lane.room).acquire_owned().await;
        let room = room.map_err(|_| ClusterError::Stopping)?;
        let call: Call = Box::new(move || {
            drop(room);
            drop(reply.send(work()));
        });
        lane.calls.try_send(call).map_err(refused)?;
        // If the queue is full, the executor is awake and will look at the calls.
        drop(lane.jobs.try_send(Job::Wake));
        answer.await.map_err(|_| ClusterError::Internal)
    }

    fn lane(&self, lane: usize) -> Result<&Lane, ClusterError> {
        self.lanes.get(lane % EXECUTORS).ok_or(ClusterError::Stopping)
    }
}

fn refused<T>(error: TrySendError<T>) -> ClusterError {
    match error {
        TrySendError::Full(_) => ClusterError::Busy,
        TrySendError::Disconnected(_) => ClusterError::Stopping,
    }
}

impl Drop for Executors {
    fn drop(&mut self) {
        self.lanes.clear();
        for thread in self.threads.drain(..) {
            // A panicked executor has logged that itself; a destructor has no caller to
            // report to.
            let _ = thread.join();
        }
    }
}

fn execute(runtime: &Runtime, jobs: &Receiver<Job>, calls: &Receiver<Call>) {
    while let Ok(job) = jobs.recv() {
        while let Ok(call) = calls.try_recv() {
            if catch_unwind(AssertUnwindSafe(call)).is_err() {
                tracing::error!("work between commands panicked");
            }
        }
        match job {
            Job::Apply { handle, command, purpose, reply } => {
                let now = Timestamp::from_millis(runtime.clock.now().as_unix_ms());
                apply(now, &handle, (&command, purpose), reply);
            }
            Job::Wake => {}
        }
    }
}

fn apply(
    now: Timestamp,
    handle: &PartitionHandle,
    (command, purpose): (&Command, Purpose),
    reply: Reply,
) {
    let range = handle.id();
    // A bug in one command must not take the other partitions down with it.
    let applied = catch_unwind(AssertUnwindSafe(|| handle.apply(now, command, purpose)));
    let Ok(applied) = applied else {
        tracing::error!("a command panicked; its partition is read from the disk again");
        handle.close();
        return answer(reply, Err(ClusterError::Internal));
    };
    match applied {
        Err(NotServing::Switching) => answer(reply, Err(ClusterError::Switching(range))),
        Err(NotServing::Partition(problem)) => {
            let (lsn, work) = (handle.durable().lsn(), problem.work(Work::RefusedWrite));
            let error = CommandError { at: 0, problem, lsn, work };
            answer(reply, Err(ClusterError::Command { range, error }));
        }
        Ok(application) => {
            let (result, durable) = (application.result, handle.durable());
            let result = result.map_err(|error| ClusterError::Command { range, error });
            application.ticket.on_done(move |fate| answer(reply, told(&durable, fate, result)));
        }
    }
}

/// The answer to a command once the status of its submission is known.
fn told(
    durable: &Durable,
    fate: CommitStatus,
    result: Result<Outcome, ClusterError>,
) -> Result<Outcome, ClusterError> {
    match fate {
        CommitStatus::Durable => {}
        // Surely not written, and so is everything that the result rests on.
        CommitStatus::Refused | CommitStatus::Fenced => return Err(ClusterError::Busy),
        CommitStatus::Full => return Err(ClusterError::Full),
        CommitStatus::Unknown => return Err(ClusterError::Unknown),
    }
    if let Ok(outcome) = &result {
        durable.raise(outcome.lsn);
    }
    result
}

/// The caller may have gone away; its write stands nevertheless.
fn answer(reply: Reply, result: Result<Outcome, ClusterError>) {
    let _ = reply.send(result);
}
