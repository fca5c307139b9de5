//! Group commit: the queue between submitters and an engine, and its leader.
//!
//! All backends share this code, so that merging, ordering, breaking of sessions and
//! failing mean the same everywhere. At any time at most one thread is the *leader*: it
//! takes what waits, merges it into one engine batch, has the engine make that durable and
//! visible, resolves the tickets in order, and continues until nothing waits. While it is
//! busy the next group gathers; that is all of group commit, there is no timer.
//!
//! Who leads depends on the backend: a slow engine gets a thread of its own
//! ([`Leader::Thread`]), with a fast one the submitter leads
//! ([`Leader::Submitter`]), which saves a thread and two context switches.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use runtime::Condvar;

use crate::{
    CommitStatus, Counters, Resolver, StorageError, Ticket, Write, WriteBatch, WriteSession,
};

#[cfg(test)]
mod tests;

/// Submissions merged into one engine batch at most. Past a few hundred the sync is
/// amortised so well that more only adds delay.
const GROUP_BATCHES_MAX: usize = 1_024;

/// Bytes merged into one engine batch at most, except for a single submission
/// that is larger: a small part of a memtable, so that a group cannot overfill it.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// Bytes that may wait. Above it submitters block (backpressure): the disk is the
/// bottleneck then, and a longer queue would only add memory and delay.
const QUEUE_BYTES_MAX: usize = 16 << 20;

/// Submissions merged: the last write of every key, `None` for a delete.
pub(crate) type MergedBatch = BTreeMap<Bytes, Option<Bytes>>;

/// What a backend provides.
pub(crate) trait Engine: Send + fmt::Debug {
    /// Asks for disk space for `bytes` before anything is written, so that what is refused
    /// is surely not written. With `relief` for writes that lead to space being given back.
    ///
    /// # Errors
    /// [`StorageError::Full`] leaves the engine as it was: the next call asks again.
    fn admit(&mut self, bytes: usize, relief: bool) -> Result<(), StorageError>;

    /// Makes all of `writes` durable, all or nothing, and then visible.
    ///
    /// # Errors
    /// After [`StorageError::Full`] the engine can continue: whether the writes are there
    /// is not known yet, but settled before anything else is committed.
    fn commit(&mut self, writes: &MergedBatch) -> Result<(), StorageError>;

    /// How often one commit waits for the disk.
    fn syncs_per_commit(&self) -> u64;

    /// Called once, after the last commit.
    fn close(&mut self) -> Result<(), StorageError>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leader {
    Submitter,
    Thread,
}

pub(crate) struct Committer<E> {
    queue: Mutex<Queue>,
    /// Something waits, or the store is closing.
    work: Condvar,
    /// There is space in the queue again, or the leader has gone.
    progress: Condvar,
    engine: Mutex<E>,
    /// The largest request for disk space that was refused since one was last granted; 0
    /// when the last one was granted.
    refused_bytes: AtomicUsize,
    totals: Totals,
    leader: Leader,
}

#[derive(Debug)]
struct Queue {
    waiting: VecDeque<Submission>,
    bytes: usize,
    state: State,
    has_leader: bool,
    /// Someone has begun to close the engine.
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
    batch: WriteBatch,
    breach: Breach,
    resolver: Resolver,
}

/// Whether and why a session is broken.
#[derive(Clone, Debug, Default)]
struct Breach(Arc<AtomicU8>);

impl Breach {
    const NONE: u8 = 0;
    const REFUSED: u8 = 1;
    const FULL: u8 = 2;

    fn open(&self, outcome: CommitStatus) {
        let why = match outcome {
            CommitStatus::Durable => Breach::NONE,
            CommitStatus::Full => Breach::FULL,
            CommitStatus::Refused | CommitStatus::Fenced | CommitStatus::Unknown => Breach::REFUSED,
        };
        self.0.fetch_max(why, Ordering::AcqRel);
    }

    /// The status of submissions to a broken session.
    fn outcome(&self) -> Option<CommitStatus> {
        match self.0.load(Ordering::Acquire) {
            Breach::NONE => None,
            Breach::FULL => Some(CommitStatus::Full),
            _ => Some(CommitStatus::Refused),
        }
    }
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
    pub(crate) fn new(engine: E, leader: Leader) -> Arc<Committer<E>> {
        let queue = Queue {
            waiting: VecDeque::new(),
            bytes: 0,
            state: State::Open,
            has_leader: false,
            ended: false,
        };
        Arc::new(Committer {
            queue: Mutex::new(queue),
            work: Condvar::new(),
            progress: Condvar::new(),
            engine: Mutex::new(engine),
            refused_bytes: AtomicUsize::new(0),
            totals: Totals::default(),
            leader,
        })
    }

    /// The body of the committer thread. Returns when the store is closed or has
    /// failed, and nothing waits any more.
    pub(crate) fn run(&self) {
        while self.await_work() {
            self.lead();
        }
    }

    /// Whether the disk has space for writes, and the engine still takes any. A refused
    /// writer need not come back, so the engine is asked again, for as much: less than that
    /// says nothing about the writes that were refused.
    pub(crate) fn health(&self) -> Result<(), StorageError> {
        self.alive()?;
        let bytes = self.refused_bytes.load(Ordering::Acquire);
        if bytes == 0 {
            return Ok(());
        }
        self.probe(bytes).unwrap_or_else(|| {
            Err(StorageError::Full { detail: "room is being looked for".to_owned() })
        })
    }

    /// Asks the engine for disk space. `None` while it is busy.
    pub(crate) fn probe(&self, bytes: usize) -> Option<Result<(), StorageError>> {
        let engine = self.engine.try_lock().ok()?;
        Some(self.ask_for_room(engine, bytes, false))
    }

    /// Runs `work` on the engine between two commits.
    pub(crate) fn with_engine<T>(&self, work: impl FnOnce(&mut E) -> T) -> T {
        work(&mut self.engine())
    }

    /// Whether the store is neither closed nor failed.
    pub(crate) fn alive(&self) -> Result<(), StorageError> {
        match &self.queue().state {
            State::Open => Ok(()),
            State::Closed => Err(StorageError::Closed),
            State::Failed { detail } => Err(StorageError::Failed { detail: detail.clone() }),
        }
    }

    /// Refuses everything from now on, with `detail` as the reported reason.
    pub(crate) fn fail(&self, detail: String) {
        let refused = self.queue().fail(detail);
        self.work.notify_all();
        self.progress.notify_all();
        resolve_all(refused, CommitStatus::Refused);
    }

    /// Waits for what was submitted, then closes the engine. Idempotent.
    pub(crate) fn close(&self) -> Result<(), StorageError> {
        let first = self.queue().close();
        self.work.notify_all();
        self.progress.notify_all();
        if self.leader == Leader::Submitter {
            self.lead();
        }
        let failure = self.await_idle();
        let ended = if first { self.engine().close() } else { Ok(()) };
        failure.map_or(ended, |detail| Err(StorageError::Failed { detail }))
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

    /// Queues a submission, or returns it when the store no longer takes any.
    fn enqueue(&self, submission: Submission) -> Result<(), Submission> {
        let bytes = submission.batch.bytes();
        let mut queue = self.queue();
        while queue.state == State::Open && !queue.has_room(bytes) {
            queue = self.progress.wait(&self.queue, queue);
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
            queue = self.work.wait(&self.queue, queue);
        }
        !queue.waiting.is_empty()
    }

    /// Waits until the queue is empty and has no leader; returns the failure, if there was one.
    fn await_idle(&self) -> Option<String> {
        let mut queue = self.queue();
        while queue.has_leader || !queue.waiting.is_empty() {
            queue = self.progress.wait(&self.queue, queue);
        }
        match &queue.state {
            State::Failed { detail } => Some(detail.clone()),
            State::Open | State::Closed => None,
        }
    }

    /// Leads until nothing waits, unless there is a leader already.
    fn lead(&self) {
        if !self.queue().take_the_lead() {
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

    fn commit(&self, group: Vec<Submission>) {
        let mut group = self.admit(group);
        let merged = merge(&mut group);
        let committed = if merged.is_empty() { Ok(()) } else { self.engine().commit(&merged) };
        match committed {
            Ok(()) => {
                self.count(group.len(), &merged);
                resolve_all(group, CommitStatus::Durable);
            }
            Err(error @ StorageError::Full { .. }) => {
                self.note_refusal(merged_bytes(&merged), &error);
                resolve_all(group, CommitStatus::Unknown);
            }
            Err(error) => {
                tracing::error!(%error, batches = group.len(), "commit failed, restart needed");
                let refused = self.queue().fail(error.to_string());
                resolve_all(group, CommitStatus::Unknown);
                resolve_all(refused, CommitStatus::Refused);
            }
        }
    }

    /// The part of a group that may be committed. Submissions whose session broke while
    /// they waited are turned away, and so are those for which there is no space; the
    /// others are then asked about again, for they may be what frees space.
    fn admit(&self, group: Vec<Submission>) -> Vec<Submission> {
        let group = unbroken(group);
        let bytes = |group: &[Submission]| group.iter().map(|one| one.batch.bytes()).sum();
        let is_modest = |one: &Submission| one.batch.is_relief() || one.batch.is_empty();
        let relief = group.iter().all(is_modest);
        let Err(error) = self.ask_for_room(self.engine(), bytes(&group), relief) else {
            return group;
        };
        let (modest, others): (Vec<_>, Vec<_>) = group.into_iter().partition(is_modest);
        self.turn_away(others, &error);
        let modest = unbroken(modest);
        if relief {
            self.turn_away(modest, &error);
            return Vec::new();
        }
        match self.ask_for_room(self.engine(), bytes(&modest), true) {
            Ok(()) => modest,
            Err(error) => {
                self.turn_away(modest, &error);
                Vec::new()
            }
        }
    }

    fn ask_for_room(
        &self,
        mut engine: MutexGuard<'_, E>,
        bytes: usize,
        relief: bool,
    ) -> Result<(), StorageError> {
        let room = engine.admit(bytes, relief);
        drop(engine);
        match &room {
            // What a relief write gets says nothing about the others.
            Ok(()) if relief => {}
            Ok(()) => self.note_room(),
            Err(error @ StorageError::Full { .. }) => self.note_refusal(bytes, error),
            Err(error) => self.fail(error.to_string()),
        }
        room
    }

    /// Logs once that there is no space.
    fn note_refusal(&self, bytes: usize, error: &StorageError) {
        if self.refused_bytes.fetch_max(bytes.max(1), Ordering::AcqRel) == 0 {
            tracing::error!(%error, "writes are refused until there is room");
        }
    }

    /// Logs once that there is space again.
    fn note_room(&self) {
        if self.refused_bytes.swap(0, Ordering::AcqRel) != 0 {
            tracing::info!("there is room again, writes go on");
        }
    }

    fn turn_away(&self, group: Vec<Submission>, error: &StorageError) {
        let full = matches!(error, StorageError::Full { .. });
        resolve_all(group, if full { CommitStatus::Full } else { CommitStatus::Refused });
    }

    fn count(&self, batches: usize, merged: &MergedBatch) {
        let bytes = merged_bytes(merged);
        self.totals.batches_durable.fetch_add(batches as u64, Ordering::Relaxed);
        self.totals.keys.fetch_add(merged.len() as u64, Ordering::Relaxed);
        self.totals.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if !merged.is_empty() {
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
    /// A submission larger than the whole queue is accepted when it is alone.
    fn has_room(&self, bytes: usize) -> bool {
        self.waiting.is_empty() || self.bytes + bytes <= QUEUE_BYTES_MAX
    }

    fn take_the_lead(&mut self) -> bool {
        let free = !self.has_leader && !self.waiting.is_empty();
        self.has_leader |= free;
        free
    }

    /// Takes the next group; an empty one means that the leader may go, which is
    /// recorded under the same lock, so that nothing is left without a leader.
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
        self.has_leader = !group.is_empty();
        group
    }

    /// Takes nothing more. Returns whether this is the first call.
    fn close(&mut self) -> bool {
        if self.state == State::Open {
            self.state = State::Closed;
        }
        !std::mem::replace(&mut self.ended, true)
    }

    /// Takes out everything that waits: it will never be written.
    fn fail(&mut self, detail: String) -> Vec<Submission> {
        if !matches!(self.state, State::Failed { .. }) {
            self.state = State::Failed { detail };
        }
        self.bytes = 0;
        self.waiting.drain(..).collect()
    }
}

/// Fails the store when its leader panics, so that no one waits for a dead thread. The
/// current group resolves as unknown by being dropped.
struct PanicGuard<'a, E: Engine> {
    committer: &'a Committer<E>,
}

impl<E: Engine> Drop for PanicGuard<'_, E> {
    fn drop(&mut self) {
        self.committer.queue().has_leader = false;
        self.committer.fail("the committer panicked".to_owned());
    }
}

/// The last write of every key over all submissions, in order.
fn merge(group: &mut [Submission]) -> MergedBatch {
    let mut merged = MergedBatch::new();
    for submission in group {
        for write in std::mem::take(&mut submission.batch).into_writes() {
            match write {
                Write::Put { key, value } => merged.insert(key, Some(value)),
                Write::Delete { key } => merged.insert(key, None),
            };
        }
    }
    merged
}

/// Turns away what waited after a submission of its session that was not written.
fn unbroken(group: Vec<Submission>) -> Vec<Submission> {
    let whole = |one: Submission| match one.breach.outcome() {
        None => Some(one),
        Some(outcome) => {
            one.resolver.resolve(outcome);
            None
        }
    };
    group.into_iter().filter_map(whole).collect()
}

fn merged_bytes(merged: &MergedBatch) -> usize {
    merged.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len)).sum()
}

fn resolve_all(group: Vec<Submission>, outcome: CommitStatus) {
    for submission in group {
        submission.breach.open(outcome);
        submission.resolver.resolve(outcome);
    }
}

/// A session of a [`Committer`].
pub(crate) struct CommitterSession<E> {
    committer: Arc<Committer<E>>,
    breach: Breach,
    /// Broken on the submitter's side: what was accepted before is written all the same.
    refused: bool,
}

impl<E: Engine> CommitterSession<E> {
    pub(crate) fn new(committer: &Arc<Committer<E>>) -> CommitterSession<E> {
        let (committer, breach) = (Arc::clone(committer), Breach::default());
        CommitterSession { committer, breach, refused: false }
    }

    fn refuse(&mut self) -> Ticket {
        self.refused = true;
        Ticket::resolved(CommitStatus::Refused)
    }
}

impl<E: Engine> WriteSession for CommitterSession<E> {
    fn submit(&mut self, batch: WriteBatch) -> Ticket {
        runtime::may_wait();
        if let Some(outcome) = self.breach.outcome() {
            return Ticket::resolved(outcome);
        }
        if self.refused {
            return self.refuse();
        }
        if let Some(error) = batch.invalid_write() {
            tracing::error!(%error, "a batch that no store can take was refused");
            return self.refuse();
        }
        let (resolver, ticket) = Ticket::pending();
        let submission = Submission { batch, breach: self.breach.clone(), resolver };
        if self.committer.enqueue(submission).is_err() {
            return self.refuse();
        }
        if self.committer.leader == Leader::Submitter {
            self.committer.lead();
        }
        ticket
    }
}

impl<E> fmt::Debug for CommitterSession<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitterSession").field("breach", &self.breach).finish_non_exhaustive()
    }
}
