//! The threads of maintenance work: reading for splits, moves and re-indexing, looking for
//! expired items and old history, sweeping what drops have left, compacting the store.
//!
//! All of it may wait for the disk, and no request waits for it: so it runs neither on the
//! async workers, nor on the executors, nor on the query threads. Long work is handed over
//! in chunks.

pub(crate) mod check;
pub(crate) mod clock;
pub(crate) mod expire;
pub(crate) mod history;
pub(crate) mod reindex;
pub(crate) mod retired;
pub(crate) mod statistics;
pub(crate) mod upgrade;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use partition::PartitionError;
use runtime::{Runtime, SharedReceiver, SyncSender, TaskHandle, Tasks, sync_channel};
use tokio::sync::{Semaphore, oneshot};

use crate::cluster::Cluster;
use crate::error::ClusterError;

/// One more than there is work that cannot be cut into chunks: while the store is
/// compacted, everything else continues.
const THREADS: usize = 2;

/// Work that may wait for a thread; further work waits for a permit. There is one for each
/// change of a layout that is under way and one for each background task.
const QUEUE_MAX: usize = 64;

type Work = Box<dyn FnOnce() + Send>;

/// The threads. Dropping it lets them finish what is queued.
#[derive(Debug)]
pub(crate) struct Maintenance {
    tasks: Arc<dyn Tasks>,
    queue: Option<SyncSender<Work>>,
    /// As many permits as the queue has slots.
    room: Arc<Semaphore>,
    queued: Arc<SharedReceiver<Work>>,
    /// Empty before the first work.
    threads: Mutex<Vec<TaskHandle>>,
}

impl Maintenance {
    pub(crate) fn new(runtime: &Runtime) -> Maintenance {
        let (queue, queued) = sync_channel(QUEUE_MAX);
        Maintenance {
            tasks: Arc::clone(&runtime.tasks),
            queue: Some(queue),
            room: Arc::new(Semaphore::new(QUEUE_MAX)),
            queued: Arc::new(SharedReceiver::new(queued)),
            threads: Mutex::default(),
        }
    }

    /// Runs work on one of the threads. It runs to its end even if this future is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        let (reply, answer) = oneshot::channel();
        self.start().map_err(|_| ClusterError::Stopping)?;
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.map_err(|_| ClusterError::Stopping)?;
        let work: Work = Box::new(move || {
            drop(room);
            drop(reply.send(work()));
        });
        let queue = self.queue.as_ref().ok_or(ClusterError::Stopping)?;
        queue.try_send(work).map_err(|_| ClusterError::Stopping)?;
        answer.await.map_err(|_| ClusterError::Internal)
    }

    fn start(&self) -> std::io::Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        while threads.len() < THREADS {
            let (queued, name) =
                (Arc::clone(&self.queued), format!("maintenance-{}", threads.len()));
            threads.push(self.tasks.spawn(&name, Box::new(move || work_off(&queued)))?);
        }
        Ok(())
    }
}

impl Drop for Maintenance {
    fn drop(&mut self) {
        self.queue = None;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A panicked thread has logged that itself; a destructor has no caller to
            // report to.
            let _ = thread.join();
        }
    }
}

/// The result of work on a bucket, unless that has to be put off: the bucket, or its items,
/// belong to another partition by now, which has its turn next time.
fn unless_put_off(done: Result<(), ClusterError>) -> Result<(), ClusterError> {
    match done {
        Err(
            ClusterError::Layout(_)
            | ClusterError::NoRange(_)
            | ClusterError::Switching(_)
            | ClusterError::Read(PartitionError::Gone)
            | ClusterError::Busy,
        ) => Ok(()),
        done => done,
    }
}

fn work_off(queued: &SharedReceiver<Work>) {
    while let Ok(work) = queued.recv() {
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            tracing::error!("maintenance work panicked");
        }
    }
}

impl Cluster {
    /// Runs work that may block on a maintenance thread.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        self.maintenance().run(work).await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[tokio::test]
    async fn the_same_few_threads_do_all_chunks() {
        let maintenance = Maintenance::new(&Runtime::real());
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for _ in 0..100 {
            let thread = maintenance.run(std::thread::current).await.unwrap();
            seen.insert(thread.name().unwrap().to_owned());
        }
        assert!(seen.iter().all(|name| name.starts_with("maintenance-")), "{seen:?}");
        assert!(seen.len() <= THREADS, "{seen:?}");
    }

    #[tokio::test]
    async fn chunks_go_on_beside_work_that_takes_long_and_after_a_panic() {
        let maintenance = Arc::new(Maintenance::new(&Runtime::real()));
        let (release, released) = sync_channel::<()>(1);
        let (begun, has_begun) = oneshot::channel();
        let long = Arc::clone(&maintenance);
        let long = tokio::spawn(async move {
            long.run(move || {
                let _ = begun.send(());
                released.recv()
            })
            .await
        });
        has_begun.await.unwrap();
        let panicked = maintenance.run(|| panic!("as the test wants it")).await;
        assert!(matches!(panicked, Err::<(), _>(ClusterError::Internal)));
        assert_eq!(maintenance.run(|| 7).await.unwrap(), 7);
        release.send(()).unwrap();
        long.await.unwrap().unwrap().unwrap();
    }
}
