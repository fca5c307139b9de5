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
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use runtime::Condvar;

use crate::{CommitStatus, Counters, Resolver, StorageError, Stream, Ticket, Write, WriteBatch};

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
    /// Asks for room for `bytes` before anything is written, so that what is refused is
    /// surely not there. With `relief` for writes that lead to space being given back.
    ///
    /// # Errors
    /// [`StorageError::Full`] leaves the engine as it was: the next call asks again.
    fn admit(&mut self, bytes: usize, relief: bool) -> Result<(), StorageError>;

    /// Makes all of `writes` durable, all or nothing, and then visible.
    ///
    /// # Errors
    /// After [`StorageError::Full`] the engine can go on: what became of the writes is not
    /// known now, but settled before anything else is committed.
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
    /// The most bytes for which there was no room since anybody last got some; 0 when the
    /// last one got what it asked for.
    refused_bytes: AtomicUsize,
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
    batch: WriteBatch,
    breach: Breach,
    resolver: Resolver,
}

/// Whether and why a stream is broken.
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

    /// What becomes of submissions to a stream that is broken.
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
            refused_bytes: AtomicUsize::new(0),
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

    /// Whether there is room for writes, and the engine still takes any. One who was
    /// refused room need not come back, so the engine is asked again, for as much: less
    /// than that says nothing about the writes that were refused.
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

    /// Asks the engine for room. Nothing while it is busy.
    pub(crate) fn probe(&self, bytes: usize) -> Option<Result<(), StorageError>> {
        let engine = self.engine.try_lock().ok()?;
        Some(self.ask_for_room(engine, bytes, false))
    }

    /// Does something with the engine between two commits.
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

    /// Refuses what comes from now on, with `detail` as the reason to report.
    pub(crate) fn fail(&self, detail: String) {
        let refused = self.queue().fail(detail);
        self.work.notify_all();
        self.progress.notify_all();
        resolve_all(refused, CommitStatus::Refused);
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
        self.alive()?;
        let guard = PanicGuard { committer: self };
        let committed = self.engine().commit(&Joined::new());
        std::mem::forget(guard);
        committed.inspect_err(|error| {
            if !matches!(error, StorageError::Full { .. }) {
                self.fail(error.to_string());
            }
        })
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

    /// Waits until nothing waits and nobody carries; the failure, if there was one.
    fn await_idle(&self) -> Option<String> {
        let mut queue = self.queue();
        while queue.carried || !queue.waiting.is_empty() {
            queue = self.progress.wait(&self.queue, queue);
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

    fn commit(&self, group: Vec<Submission>) {
        let mut group = self.admit(group);
        let joined = join(&mut group);
        let committed = if joined.is_empty() { Ok(()) } else { self.engine().commit(&joined) };
        match committed {
            Ok(()) => {
                self.count(group.len(), &joined);
                resolve_all(group, CommitStatus::Durable);
            }
            Err(error @ StorageError::Full { .. }) => {
                self.note_refusal(joined_bytes(&joined), &error);
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

    /// What may be committed of a group. Turned away are those whose stream broke while
    /// they waited, and those for whom there is no room; the others are asked about again
    /// then, for they may be what makes room.
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
            // What a modest one gets says nothing about the others.
            Ok(()) if relief => {}
            Ok(()) => self.note_room(),
            Err(error @ StorageError::Full { .. }) => self.note_refusal(bytes, error),
            Err(error) => self.fail(error.to_string()),
        }
        room
    }

    /// Tells people once that there is no room.
    fn note_refusal(&self, bytes: usize, error: &StorageError) {
        if self.refused_bytes.fetch_max(bytes.max(1), Ordering::AcqRel) == 0 {
            tracing::error!(%error, "writes are refused until there is room");
        }
    }

    /// Tells people once that there is room again.
    fn note_room(&self) {
        if self.refused_bytes.swap(0, Ordering::AcqRel) != 0 {
            tracing::info!("there is room again, writes go on");
        }
    }

    fn turn_away(&self, group: Vec<Submission>, error: &StorageError) {
        let full = matches!(error, StorageError::Full { .. });
        resolve_all(group, if full { CommitStatus::Full } else { CommitStatus::Refused });
    }

    fn count(&self, batches: usize, joined: &Joined) {
        let bytes = joined_bytes(joined);
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

/// Turns away what waited behind a submission of its stream that was not written.
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

fn joined_bytes(joined: &Joined) -> usize {
    joined.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len)).sum()
}

fn resolve_all(group: Vec<Submission>, outcome: CommitStatus) {
    for submission in group {
        submission.breach.open(outcome);
        submission.resolver.resolve(outcome);
    }
}

/// A stream into a [`Committer`].
pub(crate) struct CommitterStream<E> {
    committer: Arc<Committer<E>>,
    breach: Breach,
    /// Broken at this end: what was taken in before is written all the same.
    refused: bool,
}

impl<E: Engine> CommitterStream<E> {
    pub(crate) fn new(committer: &Arc<Committer<E>>) -> CommitterStream<E> {
        let (committer, breach) = (Arc::clone(committer), Breach::default());
        CommitterStream { committer, breach, refused: false }
    }

    fn refuse(&mut self) -> Ticket {
        self.refused = true;
        Ticket::resolved(CommitStatus::Refused)
    }
}

impl<E: Engine> Stream for CommitterStream<E> {
    fn submit(&mut self, batch: WriteBatch) -> Ticket {
        runtime::may_wait();
        if let Some(outcome) = self.breach.outcome() {
            return Ticket::resolved(outcome);
        }
        if self.refused {
            return self.refuse();
        }
        if let Some(misfit) = batch.misfit() {
            tracing::error!(%misfit, "a batch that no store can take was refused");
            return self.refuse();
        }
        let (resolver, ticket) = Ticket::pending();
        let submission = Submission { batch, breach: self.breach.clone(), resolver };
        if self.committer.enqueue(submission).is_err() {
            return self.refuse();
        }
        if self.committer.carrier == Carrier::Submitter {
            self.committer.carry();
        }
        ticket
    }
}

impl<E> fmt::Debug for CommitterStream<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitterStream").field("breach", &self.breach).finish_non_exhaustive()
    }
}
