//! The few threads that apply commands.
//!
//! Working out a command reads from storage and may wait for the committer's
//! queue, so it never runs on the async workers. A partition always belongs to
//! the same executor, which keeps its commands in order without further locks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use model::position::Timestamp;
use partition::{Command, CommandError, Outcome, Work};
use runtime::{Runtime, TaskHandle};
use storage::Outcome as Fate;
use tokio::sync::oneshot;

use crate::error::ClusterError;
use crate::map::RangeId;
use crate::slot::{Durable, Slot};

/// Threads that apply commands. Two cores are the norm, and one command costs
/// far less than the fsync it waits for.
const EXECUTORS: usize = 2;

/// Commands that may wait for one executor. At a hundred microseconds each this
/// is a tenth of a second of work; whoever comes later is told to try again.
const QUEUE_MAX: usize = 1024;

type Reply = oneshot::Sender<Result<Outcome, ClusterError>>;

struct Job {
    range: RangeId,
    slot: Arc<Slot>,
    command: Arc<Command>,
    reply: Reply,
}

/// The executors. Dropping it lets them finish what is queued.
#[derive(Debug)]
pub(crate) struct Executors {
    queues: Vec<SyncSender<Job>>,
    threads: Vec<TaskHandle>,
}

impl Executors {
    pub(crate) fn start(runtime: &Runtime) -> std::io::Result<Executors> {
        let mut executors = Executors { queues: Vec::new(), threads: Vec::new() };
        for number in 0..EXECUTORS {
            let (queue, jobs) = sync_channel(QUEUE_MAX);
            let runtime_of_thread = runtime.clone();
            let thread = runtime.tasks.spawn(
                &format!("executor-{number}"),
                Box::new(move || execute(&runtime_of_thread, &jobs)),
            )?;
            executors.queues.push(queue);
            executors.threads.push(thread);
        }
        Ok(executors)
    }

    /// Queues a command; `lane` is the same for all commands of a partition.
    pub(crate) async fn apply(
        &self,
        lane: usize,
        (range, slot): (RangeId, Arc<Slot>),
        command: Arc<Command>,
    ) -> Result<Outcome, ClusterError> {
        let (reply, answer) = oneshot::channel();
        let queue = self.queues.get(lane % EXECUTORS).ok_or(ClusterError::Stopping)?;
        match queue.try_send(Job { range, slot, command, reply }) {
            Ok(()) => answer.await.unwrap_or(Err(ClusterError::Stopping)),
            Err(TrySendError::Full(_)) => Err(ClusterError::Busy),
            Err(TrySendError::Disconnected(_)) => Err(ClusterError::Stopping),
        }
    }
}

impl Drop for Executors {
    fn drop(&mut self) {
        self.queues.clear();
        for thread in self.threads.drain(..) {
            // A panicked executor has reported itself; there is nobody to tell here.
            let _ = thread.join();
        }
    }
}

fn execute(runtime: &Runtime, jobs: &Receiver<Job>) {
    while let Ok(Job { range, slot, command, reply }) = jobs.recv() {
        let now = Timestamp::from_millis(runtime.clock.now().as_unix_ms());
        // A bug in one command must not take the other partitions down with it.
        let applied = catch_unwind(AssertUnwindSafe(|| slot.apply(now, &command)));
        let Ok(applied) = applied else {
            tracing::error!("a command panicked; its partition is read from the disk again");
            slot.close();
            answer(reply, Err(ClusterError::Internal));
            continue;
        };
        match applied {
            Err(problem) => {
                let (lsn, work) = (slot.durable().lsn(), Work::default());
                let error = CommandError { at: 0, problem, lsn, work };
                answer(reply, Err(ClusterError::Command { range, error }));
            }
            Ok(application) => {
                let (result, durable) = (application.result, slot.durable());
                let result = result.map_err(|error| ClusterError::Command { range, error });
                application.ticket.on_done(move |fate| answer(reply, told(&durable, fate, result)));
            }
        }
    }
}

/// What may be told once the fate of the submission is known.
fn told(
    durable: &Durable,
    fate: Fate,
    result: Result<Outcome, ClusterError>,
) -> Result<Outcome, ClusterError> {
    match fate {
        Fate::Durable => {}
        // Surely not written, and so is all that the result rests on.
        Fate::Refused | Fate::Fenced => return Err(ClusterError::Busy),
        Fate::Unknown => return Err(ClusterError::Unknown),
    }
    if let Ok(outcome) = &result {
        durable.raise(outcome.lsn);
    }
    result
}

/// The caller may have gone away; its write stands all the same.
fn answer(reply: Reply, result: Result<Outcome, ClusterError>) {
    let _ = reply.send(result);
}
