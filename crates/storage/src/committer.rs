//! The queue between submitters and an engine, and the one who carries it.
//!
//! All backends share this code, so that joining, ordering, breaking of streams
//! and failing mean the same everywhere. At any time at most one thread *carries*:
//! it takes what waits, joins it into one engine batch, has the engine make that
//! durable and visible, resolves the tickets in order, and goes on until nothing
//! waits. While it is busy the next group gathers; that is the whole of group
//! commit, no timer is involved.
//!
//! Who carries differs: a slow engine gets a thread of its own
//! ([`Carrier::Thread`]), a fast one is carried by whoever submits
//! ([`Carrier::Submitter`]), which spares a thread and two context switches.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::{Batch, Counters, Outcome, Resolver, StorageError, Stream, Ticket, Write};

#[cfg(test)]
mod tests;

/// Submissions joined into one engine batch at most. Past a few hundred the sync
/// is spread so thinly that more only adds delay.
const GROUP_BATCHES_MAX: usize = 1_024;

/// Bytes joined into one engine batch at most, except for a single submission
/// that is larger: a small part of a memtable, so that a group cannot overfill it.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// Bytes that may wait. Above it submitters block: the disk is the bottleneck
/// then, and a longer queue would only add memory and delay.
const QUEUE_BYTES_MAX: usize = 16 << 20;

/// Submissions joined: the last write of every key, `None` for a delete.
pub(crate) type Joined = BTreeMap<Bytes, Option<Bytes>>;

/// What a backend has to bring along.
pub(crate) trait Engine: Send + fmt::Debug {
    /// Makes all of `writes` durable, all or nothing, and then visible.
    fn commit(&mut self, writes: &Joined) -> Result<(), StorageError>;

    /// How often one commit waits for the disk.
    fn syncs_per_commit(&self) -> u64;

    /// Called once, after the last commit.
    fn close(&mut self) -> Result<(), StorageError>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Submitter,
    Thread,
}

pub(crate) struct Committer<E> {
    queue: Mutex<Queue>,
    /// Something waits, or the end has come.
    work: Condvar,
    /// There is room again, or nobody carries any more.
    progress: Condvar,
    engine: Mutex<E>,
    totals: Totals,
    carrier: Carrier,
}

#[derive(Debug)]
struct Queue {
    waiting: VecDeque<Submission>,
    bytes: usize,
    state: State,
    carried: bool,
    /// Someone has set out to end the engine.
    ended: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Open,
    Closed,
    Failed { detail: String },
}

#[derive(Debug)]
struct Submission {
    batch: Batch,
    broken: Arc<AtomicBool>,
    resolver: Resolver,
}

#[derive(Debug, Default)]
struct Totals {
    batches_submitted: AtomicU64,
    batches_durable: AtomicU64,
    commits: AtomicU64,
    syncs: AtomicU64,
    keys: AtomicU64,
    bytes: AtomicU64,
}

impl<E: Engine> Committer<E> {
    pub(crate) fn new(engine: E, carrier: Carrier) -> Arc<Committer<E>> {
        let queue = Queue {
            waiting: VecDeque::new(),
            bytes: 0,
            state: State::Open,
            carried: false,
            ended: false,
        };
        Arc::new(Committer {
            queue: Mutex::new(queue),
            work: Condvar::new(),
            progress: Condvar::new(),
            engine: Mutex::new(engine),
            totals: Totals::default(),
            carrier,
        })
    }

    /// The body of the carrying thread. Returns when the store is closed or has
    /// failed, and nothing waits any more.
    pub(crate) fn run(&self) {
        while self.await_work() {
            self.carry();
        }
    }

    pub(crate) fn health(&self) -> Result<(), StorageError> {
        match &self.queue().state {
            State::Open => Ok(()),
            State::Closed => Err(StorageError::Closed),
            State::Failed { detail } => Err(StorageError::Failed { detail: detail.clone() }),
        }
    }

    /// Refuses what comes from now on, with `detail` as the reason to report.
    pub(crate) fn fail(&self, detail: String) {
        let refused = self.queue().fail(detail);
        self.work.notify_all();
        self.progress.notify_all();
        resolve_all(refused, Outcome::Refused);
    }

    /// Waits for what was submitted, then ends the engine. Idempotent.
    pub(crate) fn close(&self) -> Result<(), StorageError> {
        let first = self.queue().close();
        self.work.notify_all();
        self.progress.notify_all();
        if self.carrier == Carrier::Submitter {
            self.carry();
        }
        let failure = self.await_idle();
        let ended = if first { self.engine().close() } else { Ok(()) };
        failure.map_or(ended, |detail| Err(StorageError::Failed { detail }))
    }

    /// Has the engine commit nothing, and so publish its state anew.
    pub(crate) fn commit_nothing(&self) -> Result<(), StorageError> {
        self.health()?;
        let guard = PanicGuard { committer: self };
        let committed = self.engine().commit(&Joined::new());
        std::mem::forget(guard);
        committed.inspect_err(|error| self.fail(error.to_string()))
    }

    pub(crate) fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            batches_submitted: read(&self.totals.batches_submitted),
            batches_durable: read(&self.totals.batches_durable),
            commits: read(&self.totals.commits),
            syncs: read(&self.totals.syncs),
            keys: read(&self.totals.keys),
            bytes: read(&self.totals.bytes),
        }
    }

    /// Takes a submission in, or gives its resolver back when the store no longer
    /// takes any.
    fn enqueue(&self, submission: Submission) -> Result<(), Submission> {
        let bytes = submission.batch.bytes();
        let mut queue = self.queue();
        while queue.state == State::Open && !queue.has_room(bytes) {
            queue = self.progress.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.state != State::Open {
            return Err(submission);
        }
        queue.bytes += bytes;
        queue.waiting.push_back(submission);
        self.totals.batches_submitted.fetch_add(1, Ordering::Relaxed);
        drop(queue);
        self.work.notify_one();
        Ok(())
    }

    fn await_work(&self) -> bool {
        let mut queue = self.queue();
        while queue.waiting.is_empty() && queue.state == State::Open {
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        !queue.waiting.is_empty()
    }

    /// Waits until nothing waits and nobody carries; the failure, if there was one.
    fn await_idle(&self) -> Option<String> {
        let mut queue = self.queue();
        while queue.carried || !queue.waiting.is_empty() {
            queue = self.progress.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        match &queue.state {
            State::Failed { detail } => Some(detail.clone()),
            State::Open | State::Closed => None,
        }
    }

    /// Carries until nothing waits, unless someone else does already.
    fn carry(&self) {
        if !self.queue().start_carrying() {
            return;
        }
        let guard = PanicGuard { committer: self };
        while let Some(group) = self.next_group() {
            self.commit(group);
        }
        std::mem::forget(guard);
    }

    fn next_group(&self) -> Option<Vec<Submission>> {
        let group = self.queue().take_group();
        self.progress.notify_all();
        (!group.is_empty()).then_some(group)
    }

    /// What is in a group was queued before its stream broke, if it did: breaking
    /// stops a stream at `submit`, and a failed commit empties the queue.
    fn commit(&self, mut group: Vec<Submission>) {
        let joined = join(&mut group);
        let committed = if joined.is_empty() { Ok(()) } else { self.engine().commit(&joined) };
        match committed {
            Ok(()) => {
                self.count(group.len(), &joined);
                resolve_all(group, Outcome::Durable);
            }
            Err(error) => {
                tracing::error!(%error, batches = group.len(), "commit failed, restart needed");
                let refused = self.queue().fail(error.to_string());
                resolve_all(group, Outcome::Unknown);
                resolve_all(refused, Outcome::Refused);
            }
        }
    }

    fn count(&self, batches: usize, joined: &Joined) {
        let bytes: usize = joined
            .iter()
            .map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len))
            .sum();
        self.totals.batches_durable.fetch_add(batches as u64, Ordering::Relaxed);
        self.totals.keys.fetch_add(joined.len() as u64, Ordering::Relaxed);
        self.totals.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if !joined.is_empty() {
            self.totals.commits.fetch_add(1, Ordering::Relaxed);
            self.totals.syncs.fetch_add(self.engine().syncs_per_commit(), Ordering::Relaxed);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No critical section leaves the queue half changed, so a panic in one
        // (out of memory, say) does not make it unusable.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn engine(&self) -> MutexGuard<'_, E> {
        // An engine that panicked is never asked to commit again: `PanicGuard`
        // has failed the store by then. It may still be closed.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: fmt::Debug> fmt::Debug for Committer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committer").field("totals", &self.totals).finish_non_exhaustive()
    }
}

impl Queue {
    /// A submission larger than the whole queue is let in when it is alone.
    fn has_room(&self, bytes: usize) -> bool {
        self.waiting.is_empty() || self.bytes + bytes <= QUEUE_BYTES_MAX
    }

    fn start_carrying(&mut self) -> bool {
        let free = !self.carried && !self.waiting.is_empty();
        self.carried |= free;
        free
    }

    /// Takes the next group; an empty one means that the carrier may go, which is
    /// recorded under the same lock, so that nothing is left behind uncarried.
    fn take_group(&mut self) -> Vec<Submission> {
        let (mut count, mut bytes) = (0, 0);
        for submission in self.waiting.iter().take(GROUP_BATCHES_MAX) {
            bytes += submission.batch.bytes();
            if count > 0 && bytes > GROUP_BYTES_MAX {
                break;
            }
            count += 1;
        }
        let group: Vec<Submission> = self.waiting.drain(..count).collect();
        self.bytes -= group.iter().map(|submission| submission.batch.bytes()).sum::<usize>();
        self.carried = !group.is_empty();
        group
    }

    /// Takes nothing more. Whether this is the first time.
    fn close(&mut self) -> bool {
        if self.state == State::Open {
            self.state = State::Closed;
        }
        !std::mem::replace(&mut self.ended, true)
    }

    /// Takes out all that waits: it will never be written.
    fn fail(&mut self, detail: String) -> Vec<Submission> {
        if !matches!(self.state, State::Failed { .. }) {
            self.state = State::Failed { detail };
        }
        self.bytes = 0;
        self.waiting.drain(..).collect()
    }
}

/// Fails the store when its carrier unwinds, so that nobody waits for a thread
/// that is no more. The group in hand resolves as unknown by being dropped.
struct PanicGuard<'a, E: Engine> {
    committer: &'a Committer<E>,
}

impl<E: Engine> Drop for PanicGuard<'_, E> {
    fn drop(&mut self) {
        self.committer.queue().carried = false;
        self.committer.fail("the committer panicked".to_owned());
    }
}

/// The last write of every key over all submissions, in order.
fn join(group: &mut [Submission]) -> Joined {
    let mut joined = Joined::new();
    for submission in group {
        for write in std::mem::take(&mut submission.batch).into_writes() {
            match write {
                Write::Put { key, value } => joined.insert(key, Some(value)),
                Write::Delete { key } => joined.insert(key, None),
            };
        }
    }
    joined
}

fn resolve_all(group: Vec<Submission>, outcome: Outcome) {
    for submission in group {
        if outcome != Outcome::Durable {
            submission.broken.store(true, Ordering::Release);
        }
        submission.resolver.resolve(outcome);
    }
}

/// A stream into a [`Committer`].
pub(crate) struct CommitterStream<E> {
    committer: Arc<Committer<E>>,
    broken: Arc<AtomicBool>,
}

impl<E: Engine> CommitterStream<E> {
    pub(crate) fn new(committer: &Arc<Committer<E>>) -> CommitterStream<E> {
        let broken = Arc::new(AtomicBool::new(false));
        CommitterStream { committer: Arc::clone(committer), broken }
    }

    fn refuse(&self) -> Ticket {
        self.broken.store(true, Ordering::Release);
        Ticket::resolved(Outcome::Refused)
    }
}

impl<E: Engine> Stream for CommitterStream<E> {
    fn submit(&mut self, batch: Batch) -> Ticket {
        if self.broken.load(Ordering::Acquire) {
            return Ticket::resolved(Outcome::Refused);
        }
        if let Some(misfit) = batch.misfit() {
            tracing::error!(%misfit, "a batch that no store can take was refused");
            return self.refuse();
        }
        let (resolver, ticket) = Ticket::pending();
        let submission = Submission { batch, broken: Arc::clone(&self.broken), resolver };
        if let Err(submission) = self.committer.enqueue(submission) {
            resolve_all(vec![submission], Outcome::Refused);
        } else if self.committer.carrier == Carrier::Submitter {
            self.committer.carry();
        }
        ticket
    }
}

impl<E> fmt::Debug for CommitterStream<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitterStream").field("broken", &self.broken).finish_non_exhaustive()
    }
}
